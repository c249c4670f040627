"""iSTFTNet with a harmonic source (arXiv 2203.02395, 1904.12088), as Kokoro-82M has it: frames -> 24 kHz.

Fourier transforms of 20 samples are products with sines: a GPU records them like everything else.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RATE = 24_000
RATES = (10, 6)
"""Of the two upsamplings; the inverse transform makes 5 samples of each step."""
FFT, HOP = 20, 5
KERNELS = (3, 7, 11)
DILATIONS = (1, 3, 5)
HARMONICS = 9


class AdaptiveNorm(nn.Module):
    """Instance norm with scale and shift by the style. [B, dim, T]"""

    def __init__(self, style: int, dim: int) -> None:
        super().__init__()
        self.norm, self.style = nn.InstanceNorm1d(dim, affine=True), nn.Linear(style, 2 * dim)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        scale, shift = self.style(style)[:, :, None].chunk(2, 1)
        return torch.addcmul(shift, self.norm(x), 1 + scale)


class SnakeBlock(nn.Module):
    """Three pairs of dilated convolutions, each behind a norm and x + sin^2(a x) / a. [B, dim, T]"""

    def __init__(self, dim: int, kernel: int, style: int) -> None:
        super().__init__()
        spreads = [spread for dilation in DILATIONS for spread in (dilation, 1)]
        self.convs = nn.ModuleList(
            nn.Conv1d(dim, dim, kernel, padding=spread * (kernel - 1) // 2, dilation=spread) for spread in spreads
        )
        self.norms = nn.ModuleList(AdaptiveNorm(style, dim) for _ in spreads)
        self.alphas = nn.ParameterList(nn.Parameter(torch.empty(1, dim, 1)) for _ in spreads)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = x
        for number, (conv, norm, alpha) in enumerate(zip(self.convs, self.norms, self.alphas, strict=True)):
            y = norm(y, style)
            y = conv(y + (alpha * y).sin().square() / alpha)
            if number % 2:
                x = y = x + y
        return x


class Source(nn.Module):
    """Pitch [B, 1, n] -> spectra of a buzz with that pitch: [B, 22, 60 * n + 1]"""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(HARMONICS, 1)

    def forward(self, pitch: Tensor, waves: Tensor) -> Tensor:
        step = math.prod(RATES) * HOP
        turns = (pitch.abs() * torch.arange(1, HARMONICS + 1, device=pitch.device)[:, None] / RATE).cumsum(-1) * step
        phase = 2 * math.pi * F.interpolate(turns, scale_factor=float(step), mode="linear")
        sound = self.mix(0.1 * phase.sin().transpose(1, 2)).tanh().squeeze(-1)
        frames = F.pad(sound[:, None], (FFT // 2, FFT // 2), mode="reflect")[:, 0].unfold(1, FFT, HOP)
        real, imaginary = (frames @ waves).chunk(2, -1)
        spectrum = [(real.square() + imaginary.square() + 1e-12).sqrt(), torch.atan2(imaginary, real)]
        return torch.cat(spectrum, -1).transpose(1, 2)


class Vocoder(nn.Module):
    """[B, dim, n] and pitch [B, 1, n] -> float[B, 300 * n]"""

    def __init__(self, dim: int, style: int) -> None:
        super().__init__()
        wide, narrow, bins = dim // 2, dim // 4, FFT + 2
        self.source = Source()
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(into, into // 2, 2 * rate, rate, padding=rate // 2)
            for into, rate in zip((dim, wide), RATES, strict=True)
        )
        fine = RATES[1]
        self.source_convs = nn.ModuleList(
            [nn.Conv1d(bins, wide, 2 * fine, fine, padding=(fine + 1) // 2), nn.Conv1d(bins, narrow, 1)]
        )
        self.source_blocks = nn.ModuleList([SnakeBlock(wide, 7, style), SnakeBlock(narrow, 11, style)])
        self.blocks = nn.ModuleList(
            nn.ModuleList(SnakeBlock(size, kernel, style) for kernel in KERNELS) for size in (wide, narrow)
        )
        self.post = nn.Conv1d(narrow, bins, 7, padding=3)

    def forward(self, x: Tensor, pitch: Tensor, style: Tensor) -> Tensor:
        waves, hann = _waves(x.device)
        source = self.source(pitch, waves)
        for number, (up, blocks) in enumerate(zip(self.ups, self.blocks, strict=True)):
            x = up(F.leaky_relu(x, 0.1))
            if number:
                x = F.pad(x, (1, 0), mode="reflect")
            x = x + self.source_blocks[number](self.source_convs[number](source), style)
            x = torch.stack([block(x, style) for block in blocks]).mean(0)
        loudness, phase = self.post(F.leaky_relu(x)).chunk(2, 1)
        loudness, phase = loudness.exp(), phase.sin()
        return _sound(loudness * phase.cos(), loudness * phase.sin(), waves, hann)


def _waves(device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the 11 bins under a Hann window, [20, 22]; the window."""
    at, bins = torch.arange(FFT, device=device), torch.arange(FFT // 2 + 1, device=device)
    phase = 2 * math.pi * at[:, None] * bins / FFT
    hann = torch.hann_window(FFT, device=device)
    return torch.cat([phase.cos(), -phase.sin()], 1) * hann[:, None], hann


def _sound(real: Tensor, imaginary: Tensor, waves: Tensor, hann: Tensor) -> Tensor:
    """The inverse of the transform: spectra [B, 11, n + 1] -> [B, 5 * n]"""
    bins = torch.arange(FFT // 2 + 1, device=real.device)[:, None]
    twice = 1.0 + ((bins > 0) & (bins < FFT // 2))  # for the conjugates
    spectra = torch.cat([real * twice, imaginary * twice], 1) / FFT
    summed = F.conv_transpose1d(spectra, waves.T[:, None].contiguous(), stride=HOP)
    weight = F.conv_transpose1d(torch.ones_like(real[:1, :1]), hann.square()[None, None], stride=HOP)
    trimmed = slice(FFT // 2, summed.shape[-1] - FFT // 2)
    return (summed[:, 0, trimmed] / weight[:, 0, trimmed]).clamp(-1, 1)
