"""The models that `tools.bench.torch_compile` measures: transformers' own, with seeded weights.

Sizes are those of the published models, but for Llama, Mixtral and Mamba, which are small ones of
their kind. Batch 1. Attention is what each model uses by default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers
from torch import nn

__all__ = ["MODELS", "TINY", "Sample", "sample"]

TINY = "tiny"
"""A module that takes no time: it shows what a call costs."""

SMALL: dict[str, Any] = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8}
SMALL_TEXT: dict[str, Any] = {
    **SMALL, "vocab_size": 1024, "intermediate_size": 688, "num_key_value_heads": 4,
    "max_position_embeddings": 512, "use_cache": False,
}  # fmt: skip
LABELS: dict[str, Any] = {"num_labels": 1000}
START: dict[str, Any] = {"decoder_start_token_id": 0}
Made = tuple[nn.Module, dict[str, torch.Tensor]]


class Sample(NamedTuple):
    """A model in evaluation mode and the keywords of a call."""

    model: nn.Module
    inputs: dict[str, torch.Tensor]


def sample(name: str) -> Sample:
    """A model of `MODELS`, statistics of its batch norms as after some training."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.get_buffer("running_mean").normal_(0, 0.1)
            module.get_buffer("running_var").uniform_(0.5, 1.5)
    return Sample(model.eval(), inputs)


def _tiny() -> Made:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)), {"input": torch.randn(1, 8)}


def _tokens(length: int, most: int) -> torch.Tensor:
    return torch.randint(3, most, (1, length))


def _pixels(side: int = 224) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(1, 3, side, side)}


def _bert() -> Made:
    inputs = {"input_ids": _tokens(128, 30000), "attention_mask": torch.ones(1, 128).long()}
    return transformers.BertModel(transformers.BertConfig()), inputs


def _gpt2() -> Made:
    config = transformers.GPT2Config(use_cache=False)
    return transformers.GPT2LMHeadModel(config), {"input_ids": _tokens(64, 50000)}


def _vit() -> Made:
    config = transformers.ViTConfig(
        hidden_size=192, num_attention_heads=3, intermediate_size=768, **LABELS
    )
    return transformers.ViTForImageClassification(config), _pixels()


def _resnet(kind: str, depths: list[int], sizes: list[int]) -> Made:
    config = transformers.ResNetConfig(layer_type=kind, depths=depths, hidden_sizes=sizes, **LABELS)
    return transformers.ResNetForImageClassification(config), _pixels()


def _mobilenet() -> Made:
    config = transformers.MobileNetV2Config(**LABELS)
    return transformers.MobileNetV2ForImageClassification(config), _pixels()


def _t5() -> Made:
    config = transformers.T5Config(use_cache=False, **START)
    inputs = {"input_ids": _tokens(64, 32000), "decoder_input_ids": _tokens(16, 32000)}
    return transformers.T5ForConditionalGeneration(config), inputs


def _whisper() -> Made:
    config = transformers.WhisperConfig(use_cache=False)
    inputs = {
        "input_features": torch.randn(1, 80, 3000),
        "decoder_input_ids": _tokens(8, 50000),
    }
    return transformers.WhisperModel(config), inputs


def _clip() -> Made:
    inputs = {"input_ids": _tokens(16, 49000), **_pixels()}
    return transformers.CLIPModel(transformers.CLIPConfig()), inputs


def _llama() -> Made:
    return (
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL_TEXT)),
        {"input_ids": _tokens(64, 1024)},
    )


def _mixtral() -> Made:
    config = transformers.MixtralConfig(**SMALL_TEXT, num_local_experts=4)
    return transformers.MixtralForCausalLM(config), {"input_ids": _tokens(64, 1024)}


def _mamba() -> Made:
    config = transformers.MambaConfig(
        hidden_size=256, num_hidden_layers=2, vocab_size=1024, use_cache=False
    )
    return transformers.MambaForCausalLM(config), {"input_ids": _tokens(16, 1024)}


class UNetBlock(nn.Module):
    """A residual block of a diffusion U-Net with a time embedding, and self-attention after it."""

    def __init__(self, channels: int = 192, out: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm_in, self.norm_out = nn.GroupNorm(32, channels), nn.GroupNorm(32, out)
        self.conv_in = nn.Conv2d(channels, out, 3, padding=1)
        self.conv_out = nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(512, out)
        self.skip = nn.Conv2d(channels, out, 1)
        self.norm = nn.GroupNorm(32, out)
        self.qkv, self.project = nn.Conv2d(out, 3 * out, 1), nn.Conv2d(out, out, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """x: [batch, channels, height, width]; time: [batch, 512]."""
        silu = nn.functional.silu
        shift = self.time(silu(time))[:, :, None, None]
        y = self.conv_in(silu(self.norm_in(x))) + shift
        y = self.conv_out(silu(self.norm_out(y))) + self.skip(x)
        q, k, v = map(self._by_head, self.qkv(self.norm(y)).flatten(2).transpose(1, 2).chunk(3, -1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        found: torch.Tensor = y + self.project(seen.permute(0, 1, 3, 2).reshape(y.shape))
        return found

    def _by_head(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)


def _unet() -> Made:
    return UNetBlock(), {"x": torch.randn(1, 192, 32, 32), "time": torch.randn(1, 512)}


MODELS: dict[str, Callable[[], Made]] = {
    "bert": _bert,
    "gpt2": _gpt2,
    "vit": _vit,
    "resnet18": lambda: _resnet("basic", [2, 2, 2, 2], [64, 128, 256, 512]),
    "resnet50": lambda: _resnet("bottleneck", [3, 4, 6, 3], [256, 512, 1024, 2048]),
    "mobilenet_v2": _mobilenet,
    "t5": _t5,
    "whisper": _whisper,
    "clip": _clip,
    "llama": _llama,
    "mixtral": _mixtral,
    "mamba": _mamba,
    "unet": _unet,
    TINY: _tiny,
}
