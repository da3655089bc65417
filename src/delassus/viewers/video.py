"""A motion as a video, without a browser: GIF and WebP by Pillow, MP4 by ffmpeg; every frame is drawn by :mod:`.render`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError
from .looks import SLIDES, STICKS
from .render import Studio
from .subject import Subject, force_scale

__all__ = ["VIDEOS", "check_video", "frames", "write_video"]

VIDEOS = (".gif", ".webp", ".mp4")
_HOLD = 0.6  # time that the last frame stays before a GIF or WebP repeats [s]


def check_video(suffix: str) -> Any:
    """Return the module that writes such a video.

    Raises:
        MissingExtraError: MP4 needs ffmpeg.
    """
    if suffix != ".mp4":
        return importlib.import_module("PIL.Image")
    try:
        importlib.import_module("imageio_ffmpeg")
        return importlib.import_module("imageio.v2")
    except ImportError:
        raise MissingExtraError(
            'an .mp4 file needs ffmpeg, which the extra "video" brings: pip install "delassus[video]". A .gif or .webp needs nothing more.'
        ) from None


def frames(
    what: Subject, chosen: list[int], *, size: tuple[int, int], look: str, progress: Callable[[float], object] | None = None
) -> Iterator[NDArray[np.uint8]]:
    """Draw frames of a subject, (height, width, 3) numbers from 0 to 255, with the time and the scale of arrows drawn on them."""
    from PIL import Image, ImageDraw

    looks = what.states[np.unique(np.linspace(0, len(what.states) - 1, 24).astype(int))]
    studio = Studio(what.model, looks, solids=what.solids, size=size, look=look)
    newton, example = force_scale(what, studio.reach)
    studio.newton = newton
    ink = (225, 230, 236) if studio.look.dark else (45, 52, 62)
    font, small = _font(round(size[1] / 21)), _font(round(size[1] / 27))
    for n, k in enumerate(chosen):
        contacts = what.contacts(k)
        image = Image.fromarray(np.round(255 * studio.picture(what.states[k], contacts)).astype(np.uint8))
        pen = ImageDraw.Draw(image)
        edge = round(size[1] / 40)
        if what.trajectory is not None:
            pen.text((edge, edge), f"t = {what.trajectory.times[k]:.2f} s", fill=ink, font=font)
        if example > 0:
            _legend(pen, size, edge, example, newton * example * studio.camera.scale / studio.camera.distance, ink, small)
        if progress is not None:
            progress((n + 1) / len(chosen))
        yield np.asarray(image)


def _legend(pen: Any, size: tuple[int, int], edge: int, force: float, length: float, ink: tuple[int, int, int], font: Any) -> None:
    """Draw the scale arrow, at the distance of the camera's target, and the meaning of the colours."""
    y = size[1] - edge - round(size[1] / 50)
    pen.line([(edge, y), (edge + length, y)], fill=ink, width=2)
    head = max(4, size[1] // 80)
    pen.polygon([(edge + length + head, y), (edge + length, y - head / 1.6), (edge + length, y + head / 1.6)], fill=ink)
    x = edge + length + 2.2 * head
    for text, color in ((f"{force:g} N", ink), ("sticks", STICKS), ("slides", SLIDES)):
        pen.text((x, y), text, fill=color, font=font, anchor="lm")
        x += pen.textlength(text + "  ", font=font)


def _font(height: int) -> Any:
    """Return matplotlib's own font, available on every machine."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), max(height, 9))


def write_video(
    file: BinaryIO, suffix: str, what: Subject, schedule: list[tuple[int, float]], *, fps: float, size: tuple[int, int], look: str,
    progress: Callable[[float], object] | None = None,
) -> None:  # fmt: skip
    """Write the first frame and those of a schedule, (frame, delay before it [s]), to a file."""
    module = check_video(suffix)
    chosen = [0, *(k for k, _ in schedule)]
    drawn = frames(what, chosen, size=size, look=look, progress=progress)
    if suffix == ".mp4":
        # all frames last equally long; yuv420p, which all players support, needs even sizes
        with module.get_writer(file, format="mp4", fps=fps, codec="libx264", macro_block_size=2, output_params=["-crf", "20"]) as writer:
            for image in drawn:
                writer.append_data(image)
        return
    images = [module.fromarray(image) for image in drawn]
    # a GIF counts time in hundredths of a second: rounded so that errors do not add up
    ends = np.cumsum([*(wait for _, wait in schedule), _HOLD])
    unit = 10 if suffix == ".gif" else 1
    lasts = np.diff(np.round(ends * 1000 / unit), prepend=0.0).astype(int) * unit
    if suffix == ".gif":
        sample = [np.asarray(images[k]) for k in np.unique(np.linspace(0, len(images) - 1, 5).astype(int))]
        # thin arrows cover few pixels: a strip of their colours gets them into the palette
        strip = np.zeros((sample[0].shape[0] // 3, sample[0].shape[1], 3), dtype=np.uint8)
        half = strip.shape[1] // 2
        strip[:, :half], strip[:, half:] = STICKS, SLIDES
        palette = module.fromarray(np.concatenate([*sample, strip])).quantize(colors=255, method=module.Quantize.MEDIANCUT)
        images = [image.quantize(palette=palette, dither=module.Dither.NONE) for image in images]
        images[0].save(file, format="GIF", save_all=True, append_images=images[1:], duration=lasts.tolist(), loop=0, optimize=False)
    else:
        images[0].save(file, format="WEBP", save_all=True, append_images=images[1:], duration=lasts.tolist(), loop=0, quality=82, method=4)
