"""Small models of transformers' own configurations, seeded, with inputs: the shapes of the real
ones, a few layers deep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers
from torch import nn

__all__ = ["ZOO", "Sample"]

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SIZES, "intermediate_size": 128, "vocab_size": 100}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class Sample(NamedTuple):
    """A model in evaluation mode and the keywords of a call."""

    model: nn.Module
    inputs: dict[str, Any]


def _tokens(rows: int = 2, length: int = 12) -> torch.Tensor:
    return torch.randint(3, 100, (rows, length))


def _masked() -> dict[str, torch.Tensor]:
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 7:] = 0
    return {"input_ids": _tokens(), "attention_mask": mask}


def _bert() -> Sample:
    return Sample(transformers.BertModel(transformers.BertConfig(**TEXT)), _masked())


def _gpt2() -> Sample:
    config = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, **SPECIAL)
    return Sample(transformers.GPT2LMHeadModel(config), {"input_ids": _tokens()})


def _vit() -> Sample:
    config = transformers.ViTConfig(**SIZES, intermediate_size=128, image_size=32, patch_size=8)
    return Sample(transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)})


def _resnet(kind: str) -> Sample:
    config = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64], depths=[2, 2, 2], layer_type=kind,
        num_labels=10,
    )  # fmt: skip
    model = transformers.ResNetForImageClassification(config)
    return Sample(model, {"pixel_values": torch.randn(2, 3, 64, 64)})


def _mobilenet() -> Sample:
    config = transformers.MobileNetV2Config(image_size=64, depth_multiplier=0.35)
    model = transformers.MobileNetV2Model(config)
    return Sample(model, {"pixel_values": torch.randn(1, 3, 64, 64)})


def _t5() -> Sample:
    config = transformers.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100,
        decoder_start_token_id=0,
    )  # fmt: skip
    inputs = {"input_ids": _tokens(), "decoder_input_ids": _tokens(2, 6)}
    return Sample(transformers.T5ForConditionalGeneration(config), inputs)


def _whisper() -> Sample:
    config = transformers.WhisperConfig(
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=200,
        num_mel_bins=16, max_source_positions=50, decoder_start_token_id=1, **SPECIAL,
    )  # fmt: skip
    inputs = {"input_features": torch.randn(1, 16, 100), "decoder_input_ids": _tokens(1, 6)}
    return Sample(transformers.WhisperModel(config), inputs)


def _clip() -> Sample:
    text = {**TEXT, "bos_token_id": 98, "eos_token_id": 99, "pad_token_id": 1}
    image = {**SIZES, "intermediate_size": 128, "image_size": 32, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=32)
    inputs = {"input_ids": _tokens(2, 7), "pixel_values": torch.randn(2, 3, 32, 32)}
    return Sample(transformers.CLIPModel(config), inputs)


def _llama() -> Sample:
    config = transformers.LlamaConfig(**TEXT, num_key_value_heads=2)
    return Sample(transformers.LlamaForCausalLM(config), {"input_ids": _tokens()})


def _mixtral() -> Sample:
    config = transformers.MixtralConfig(**TEXT, num_key_value_heads=2, num_local_experts=4)
    return Sample(transformers.MixtralForCausalLM(config), {"input_ids": _tokens()})


def _mamba() -> Sample:
    config = transformers.MambaConfig(
        hidden_size=32, state_size=8, num_hidden_layers=2, vocab_size=100
    )
    return Sample(transformers.MambaForCausalLM(config), {"input_ids": _tokens()})


class _Block(nn.Module):
    """A residual block of a diffusion U-Net, with a time embedding."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, channels), nn.GroupNorm(4, out)])
        self.convs = nn.ModuleList(
            [nn.Conv2d(channels, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)]
        )
        self.time = nn.Linear(32, out)
        self.skip = nn.Conv2d(channels, out, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        silu = nn.functional.silu
        shift = self.time(silu(time))[:, :, None, None]
        y = self.convs[0](silu(self.norms[0](x))) + shift
        return self.convs[1](silu(self.norms[1](y))) + self.skip(x)


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([_Block(8, 16), _Block(16, 16), _Block(32, 8)])
        self.down = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 2, stride=2)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        top = self.blocks[0](x, time)
        low = self.blocks[1](self.down(top), time)
        up = nn.functional.interpolate(low, scale_factor=2, mode="nearest") + self.up(low)
        return self.blocks[2](torch.cat([up, top], 1), time)


def _unet() -> Sample:
    return Sample(_UNet(), {"x": torch.randn(2, 8, 16, 16), "time": torch.randn(2, 32)})


ZOO: dict[str, Callable[[], Sample]] = {
    "bert": _bert,
    "gpt2": _gpt2,
    "vit": _vit,
    "resnet18": lambda: _resnet("basic"),
    "resnet50": lambda: _resnet("bottleneck"),
    "mobilenet_v2": _mobilenet,
    "t5": _t5,
    "whisper": _whisper,
    "clip": _clip,
    "llama": _llama,
    "mixtral": _mixtral,
    "mamba": _mamba,
    "unet": _unet,
}
