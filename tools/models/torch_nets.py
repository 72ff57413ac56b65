"""The torch networks of the zoo: transformers configurations with seeded random weights.

Names map to functions that return a module in eval mode, with outputs as a flat tuple.
Only MiniLM has trained weights; they come from an installed package.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D


class FlatOutputs(nn.Module):
    """Calls a transformers model with named inputs and returns chosen outputs as a tuple."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], outputs: tuple[str, ...]):
        super().__init__()
        self.model, self.inputs, self.outputs = model, inputs, outputs

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.model(**dict(zip(self.inputs, args, strict=True)))
        return tuple(result[name] for name in self.outputs)


TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TEXT_OUTPUTS = ("last_hidden_state", "pooler_output")


def bert_base() -> nn.Module:
    """BERT-base, 12 layers of 768."""
    config = transformers.BertConfig(attn_implementation="eager")
    return FlatOutputs(_seeded(transformers.BertModel(config)), TEXT_INPUTS, TEXT_OUTPUTS)


def minilm(folder: Path) -> nn.Module:
    """all-MiniLM-L6-v2 with its trained weights, read from a Hugging Face folder."""
    transformers.utils.logging.disable_progress_bar()
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager")
    return FlatOutputs(model.eval(), TEXT_INPUTS, TEXT_OUTPUTS)


def resnet18() -> nn.Module:
    """ResNet-18 with a 1000-class head."""
    config = transformers.ResNetConfig(
        layer_type="basic",
        depths=[2, 2, 2, 2],
        hidden_sizes=[64, 128, 256, 512],
        num_labels=1000,
    )
    return _image_net(transformers.ResNetForImageClassification(config))


def resnet50() -> nn.Module:
    """ResNet-50 with a 1000-class head."""
    config = transformers.ResNetConfig(num_labels=1000)
    return _image_net(transformers.ResNetForImageClassification(config))


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 1.0 with a 1001-class head."""
    config = transformers.MobileNetV2Config(num_labels=1001)
    return _image_net(transformers.MobileNetV2ForImageClassification(config), gain=2**0.5)


def vit_tiny() -> nn.Module:
    """ViT-tiny/16 at 224: 12 layers of 192 with 3 heads, and a 1000-class head."""
    config = transformers.ViTConfig(
        hidden_size=192,
        num_attention_heads=3,
        intermediate_size=768,
        num_labels=1000,
        attn_implementation="eager",
    )
    return _image_net(transformers.ViTForImageClassification(config))


def gpt2() -> nn.Module:
    """GPT-2 small over a whole sequence, without a key-value cache."""
    config = transformers.GPT2Config(attn_implementation="eager", use_cache=False)
    return _language_model(transformers.GPT2LMHeadModel(config))


def llama_tiny() -> nn.Module:
    """A 2-layer Llama of width 256 with grouped-query attention, without a key-value cache."""
    config = transformers.LlamaConfig(
        vocab_size=1024,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=512,
        use_cache=False,
        attn_implementation="eager",
    )
    return _language_model(transformers.LlamaForCausalLM(config))


def _image_net(model: nn.Module, gain: float = 1.0) -> nn.Module:
    return FlatOutputs(_seeded(model, gain), ("pixel_values",), ("logits",))


def _language_model(model: nn.Module) -> nn.Module:
    return FlatOutputs(_seeded(model), ("input_ids", "attention_mask"), ("logits",))


NETS: dict[str, Callable[[], nn.Module]] = {
    "bert-base": bert_base,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet-v2": mobilenet_v2,
    "vit-tiny": vit_tiny,
    "gpt2": gpt2,
    "llama-tiny": llama_tiny,
}


def _seeded(model: nn.Module, gain: float = 1.0) -> nn.Module:
    """Fill every weight at random so that activations stay near unit size; eval mode.

    `gain` multiplies convolution weights: chains without shortcuts need sqrt(2) (He), residual
    networks 1.
    """
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _, module in sorted(model.named_modules()):
            _fill_module(module, gain, random)
    return model.eval()


def _fill_module(module: nn.Module, gain: float, random: torch.Generator) -> None:
    """Random values for the module's own parameters and batch-norm statistics."""
    for name, parameter in module.named_parameters(recurse=False):
        if parameter.dim() >= 2 and name == "weight":
            parameter.normal_(0, _deviation(module, parameter, gain), generator=random)
        elif name == "weight":
            parameter.uniform_(0.5, 1.5, generator=random)
        else:
            parameter.normal_(0, 0.02, generator=random)
    if isinstance(module, nn.BatchNorm2d):
        module.get_buffer("running_mean").normal_(0, 0.1, generator=random)
        module.get_buffer("running_var").uniform_(0.5, 1.5, generator=random)


def _deviation(module: nn.Module, weight: torch.Tensor, gain: float) -> float:
    """1/sqrt(fan in), times the gain for convolutions."""
    if isinstance(module, nn.Embedding):
        return 0.02
    if isinstance(module, Conv1D):
        return weight.shape[0] ** -0.5
    return (gain if isinstance(module, nn.Conv2d) else 1.0) * weight[0].numel() ** -0.5
