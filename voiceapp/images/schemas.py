"""Requests for pictures and films. Fields that are not named here are handed on to a service of the same
interface, whose models know more parameters than this server does."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from voiceapp.http.schemas import CleanStr, Schema

MAX_PICTURES = 10

Address = Annotated[CleanStr, Field(max_length=2048)]
Prompt = Annotated[CleanStr, Field(min_length=1, max_length=10_000)]
Size = Annotated[CleanStr, Field(pattern=r"^\d{2,5}[*x]\d{2,5}$")]


class ImageParameters(Schema, extra="allow"):
    """Parameters of a picture."""

    n: Annotated[int, Field(ge=1, le=MAX_PICTURES)] = 1
    """Number of pictures."""
    size: Size | None = None
    """Such as `1024*1024`."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Seed of the first picture; each further one has the next number."""


class ImageInput(Schema, extra="allow"):
    """Subject of a picture, and pictures to begin from."""

    prompt: Prompt
    """Description of the picture."""
    negative_prompt: CleanStr | None = None
    """Description of what to avoid."""
    ref_img: Address | None = None
    """Address of a picture that the new one should resemble."""

    images: Annotated[list[Address], Field(max_length=MAX_PICTURES)] | None = None
    """Addresses of the pictures to change."""
    base_image_url: Address | None = None
    """The same for a single one."""
    mask_image_url: Address | None = None
    """Address of a mask: white where the first picture may change."""

    @property
    def pictures(self) -> list[str]:
        """All to begin with."""
        return [*(self.images or ()), *filter(None, (self.base_image_url, self.ref_img))]


class ImageBody(Schema):
    model: CleanStr
    """Such as `qwen-image`."""
    input: ImageInput
    parameters: ImageParameters | None = None


class ImagePart(Schema, extra="allow"):
    """Words, or the address of a picture."""

    text: CleanStr | None = None
    image: Address | None = None


class ImageMessage(Schema):
    """Description of a picture, with the pictures to change, if any."""

    role: Literal["user"] = "user"
    content: Annotated[list[ImagePart], Field(min_length=1, max_length=MAX_PICTURES + 1)]


class MessageInput(Schema, extra="allow"):
    messages: Annotated[list[ImageMessage], Field(min_length=1, max_length=1)]
    """One message."""


class MessageBody(Schema):
    model: CleanStr
    """Such as `qwen-image`."""
    input: MessageInput
    parameters: ImageParameters | None = None


class VideoParameters(Schema, extra="allow"):
    """Parameters of a film."""

    size: Size | None = None
    """Such as `1280*720`."""
    duration: Annotated[int, Field(ge=1, le=120)] | None = None
    """Seconds."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class Medium(Schema, extra="allow"):
    """A picture, film or sound to work from."""

    url: Address | None = None


class VideoInput(Schema, extra="allow"):
    """Subject of a film, and pictures to begin from."""

    prompt: Annotated[CleanStr, Field(max_length=10_000)] | None = None
    """Description of the film."""
    img_url: Address | None = None
    """Address of the first frame."""
    first_frame_url: Address | None = None
    """The same, for models that are given the last one as well."""
    last_frame_url: Address | None = None
    head_frame: Address | None = None
    """Another name of `first_frame_url`."""
    tail_frame: Address | None = None
    """Another name of `last_frame_url`."""
    reference_url: Address | None = None
    """Address of a picture or film that the new one should resemble."""
    reference_urls: Annotated[list[Address], Field(max_length=MAX_PICTURES)] | None = None
    """The same, for several."""
    reference_video_urls: Annotated[list[Address], Field(max_length=MAX_PICTURES)] | None = None
    """The same, for films."""
    media: Annotated[list[Medium], Field(max_length=MAX_PICTURES)] | None = None
    """All of these in one list, each with its `type`."""

    @property
    def sources(self) -> list[str]:
        """Addresses of everything that the film begins from or should resemble."""
        frames = (self.img_url, self.first_frame_url, self.last_frame_url, self.head_frame, self.tail_frame)
        several = (*(self.reference_urls or ()), *(self.reference_video_urls or ()))
        media = (medium.url for medium in self.media or ())
        return list(filter(None, (*frames, self.reference_url, *several, *media)))


class VideoBody(Schema):
    model: CleanStr
    """Such as `wan2.2-t2v-plus`."""
    input: VideoInput
    parameters: VideoParameters | None = None
