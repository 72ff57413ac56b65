"""Small torch models, importable by name: `tests.torch_front.torch_models:with_examples`."""

from __future__ import annotations

import torch


class Dense(torch.nn.Module):
    """relu(x @ w + b) for x of [rows, 8]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


class Counting(torch.nn.Module):
    """Counts its calls in a buffer; a dict with a list, a number and None as its result."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, *, scale: int = 2) -> dict:
        self.calls.add_(1)
        y = x.reshape(x.shape[0], -1, 8) * scale + self.calls
        return {"y": y, "extents": [scale, y.shape[1]], "mask": mask}


class Mixing(torch.nn.Module):
    """Adds positions, of which there are 100."""

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x + positions[:, : x.shape[1]]


class Branching(torch.nn.Module):
    """Another computation for long sequences."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 300:
            return x * 2
        return x + 1


class Grouping(torch.nn.Module):
    """Rows of eight."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1] // 8, 8).sum(-1)


class Remembering(torch.nn.Module):
    """TorchScript with state: the sum of all inputs so far, in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(0)

    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        if self.total.numel() == 0:
            self.total = torch.zeros_like(x)
        for _ in range(times):
            self.total = self.total + x
        return self.total.clone().mul_(2)


class Peeking(torch.nn.Module):
    """A branch on what a tensor holds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x + 1
        return x


def dense() -> torch.nn.Module:
    """A model without examples."""
    return Dense().eval()


def with_examples() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A model with examples of its arguments."""
    return Dense().eval(), (torch.zeros(2, 8),)
