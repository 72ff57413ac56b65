"""The backend of `torch.compile`: see `backend.backend`, which torch finds by an entry point."""

from cuvil.integrations.torch_compile.backend import backend

__all__ = ["backend"]
