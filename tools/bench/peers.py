"""The engines that `cuvil bench` compares with, for the tools here."""

from cuvil.cli.peers import Arrays, Call, NetBuilder, Peer, PeerError, names, peer

__all__ = ["Arrays", "Call", "NetBuilder", "Peer", "PeerError", "names", "peer"]
