"""Whether everything has its place: on narrow and wide screens, in narrow and wide fonts, in usual and large text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import StorageState, expect

from tests.thorough import usually

from .accessibility import violations
from .conftest import OpenPage
from .fonts import FONTS
from .page import VoicePage

LOOKS = usually(("wide", 100), ("narrow", 200), more=(("narrow", 100), ("wide", 200)))
NARROWEST, WIDEST = 320, 1920

STRAYS = """(place) => {
    const parts = [...document.querySelectorAll(`${place} :is(a, button, input, .link)`)]
        .filter((part) => part.checkVisibility())
        .map((part) => ({ name: part.id || part.className, box: part.getBoundingClientRect(), part }));
    const { scrollWidth } = document.documentElement;
    const isApart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    const isTooWide = scrollWidth > innerWidth ? [`the page is ${scrollWidth - innerWidth} px too wide`] : [];
    return isTooWide.concat(parts.flatMap(({ name, box, part }, index) => [
        ...(box.left < 0 || box.right > innerWidth ? [`${name} is outside`] : []),
        ...(part.scrollWidth > part.clientWidth + 1 ? [`${name} is too small for its words`] : []),
        ...parts.slice(index + 1)
            .filter((other) => !isApart(box, other.box))
            .map((other) => `${name} is on ${other.name}`),
    ]));
}"""
"""What does not fit: the page itself, or controls of a place outside the window, cramped, or on one another."""

CUT_OFF = """(place) => {
    const frame = document.querySelector(place);
    const edges = frame.getBoundingClientRect();
    const [left, right] = [Math.max(edges.left, 0) - 1, Math.min(edges.right, innerWidth) + 1];
    const isOut = ({ left: begin, right: end, width }) => width > 0 && (begin < left || end > right);
    const isTooSmall = ({ scrollWidth, clientWidth }) => clientWidth > 0 && scrollWidth > clientWidth + 1;
    return [frame, ...frame.querySelectorAll('*')]
        .filter((part) => part.checkVisibility() && !part.closest('.visually-hidden, .orb-place, option, svg'))
        .filter((part) => isOut(part.getBoundingClientRect()) || isTooSmall(part))
        .map((part) => part.id || part.className || part.textContent.trim().slice(0, 40));
}"""
"""What of a place is cut off at its edges or scrolls sideways, and what has words beyond its own edge."""


def strays(voice: VoicePage, place: str) -> list[str]:
    found: list[str] = voice.page.evaluate(STRAYS, place)
    return found


def resize(voice: VoicePage, width: int, height: int) -> None:
    voice.page.set_viewport_size({"width": width, "height": height})


@pytest.mark.parametrize(("fonts", "text_percent"), LOOKS)
def test_everything_has_its_place(open_page: OpenPage, screenshots: Path, fonts: str, text_percent: int) -> None:
    sized = {"look": {"fonts": fonts, "text_percent": text_percent}, "viewport": {"width": 320, "height": 800}}
    voice = open_page(**sized, first_visit=text_percent > 100)
    look = f"{text_percent}-{fonts}"
    assert drawn_fonts(voice).items() <= FONTS[fonts][1].items()
    check_that_nothing_is_cut_off(voice, screenshots, look)
    voice.talk()
    check_that_what_is_touched_is_large_enough(voice)
    if is_large := text_percent > 100:
        voice.type("What can you do?")
        voice.wait("ai-speaking")
    else:  # there is room for the drawer
        check_that_the_events_leave_the_reply_its_place(voice, screenshots, fonts)
    check_that_it_fits_every_screen(voice, screenshots, look, is_large=is_large)


def drawn_fonts(voice: VoicePage) -> dict[str, str]:
    inspector = voice.page.context.new_cdp_session(voice.page)
    for domain in ("DOM", "CSS"):
        inspector.send(f"{domain}.enable")
    root = inspector.send("DOM.getDocument")["root"]["nodeId"]
    drawn = {}
    for generic, place in {"sans-serif": "#status", "serif": ".welcome-title"}.items():
        node = inspector.send("DOM.querySelector", {"nodeId": root, "selector": place})["nodeId"]
        [font] = inspector.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        drawn[generic] = font["familyName"]
    return drawn


def check_that_nothing_is_cut_off(voice: VoicePage, screenshots: Path, look: str) -> None:
    voice.page.evaluate(
        """() => document.querySelectorAll('.about').forEach((about) => { // as with the built-in language model
            const last = about.querySelector('a:last-of-type');
            last.after(' ', Object.assign(last.cloneNode(), { textContent: 'Small built-in model: often wrong' }));
        })"""
    )
    wrong = {}
    for place in (".stage", "#settings"):
        if place == "#settings":
            voice.page.click("#open-settings")
        for width in (320, 360, 390, 430, 768):
            resize(voice, width, 800)
            voice.page.screenshot(path=screenshots / f"whole-{place[1:]}-{width}-{look}.png")
            if found := voice.page.evaluate(CUT_OFF, place):
                wrong[place, width] = found
    assert wrong == {}
    voice.page.keyboard.press("Escape")
    expect(voice.page.locator("#settings")).to_be_hidden()


def check_that_what_is_touched_is_large_enough(voice: VoicePage) -> None:
    resize(voice, 390, 844)
    small = voice.page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, a.brand')]
            .filter((element) => element.checkVisibility() && element.type !== 'checkbox')
            .map((element) => [element.id || element.className, element.getBoundingClientRect()])
            .filter(([, box]) => box.width < 44 || box.height < 44)
            .map(([name, box]) => `${name} ${box.width} x ${box.height}`)"""
    )
    assert small == []


def check_that_the_events_leave_the_reply_its_place(voice: VoicePage, screenshots: Path, fonts: str) -> None:
    """The reply goes on when the drawer is closed again."""
    resize(voice, 1920, 1080)
    voice.page.click("#open-drawer")
    expect(voice.page.locator("#transcript")).to_be_visible()
    voice.type("What can you do?")
    voice.wait("ai-speaking")
    for width, height, lines in ((1920, 1080, 6), (1440, 900, 5), (1280, 800, 5), (1024, 768, 3)):
        resize(voice, width, height)
        expect(voice.page.locator("#transcript")).to_be_visible()
        voice.page.screenshot(path=screenshots / f"events-{width}-{fonts}.png")
        seen = voice.page.evaluate(
            """() => {
                const box = document.querySelector('#captions');
                const line = parseFloat(getComputedStyle(document.querySelector('#caption-assistant')).lineHeight);
                return box.clientHeight / line;
            }"""
        )
        assert seen >= lines
        assert strays(voice, ":is(.bar, .dock, .panel-head)") == []
        box, drawer = (voice.page.locator(place).bounding_box() for place in ("#captions", "#drawer"))
        assert box is not None
        assert drawer is not None
        assert box["y"] + box["height"] <= drawer["y"] or box["x"] + box["width"] <= drawer["x"]
    voice.page.click("#close-drawer")


def check_that_it_fits_every_screen(voice: VoicePage, screenshots: Path, look: str, *, is_large: bool) -> None:
    """In a conversation; of text of twice the size, what does not fit can be scrolled to."""
    for width, height in (
        *((320, 568), (390, 844), (768, 1024), (1280, 800)),
        *(() if is_large else ((640, 360), (1920, 1080))),
    ):
        resize(voice, width, height)
        voice.page.screenshot(path=screenshots / f"fits-{width}x{height}-{look}.png")
        assert strays(voice, ":is(.bar, .dock)") == []
        for name in ("orb", "mute", "push-to-talk", "end", "message", "status"):
            if is_large:
                voice.page.locator(f"#{name}").scroll_into_view_if_needed()
            expect(voice.page.locator(f"#{name}")).to_be_in_viewport(ratio=1)
        captions = voice.page.locator("#captions").bounding_box()
        assert captions is not None
        assert not is_large or captions["height"] > 2 * 32  # two lines of it can be read at a time


@pytest.mark.parametrize(("fonts", "text_percent"), LOOKS)
def test_it_fits_for_people_who_signed_in_too(
    open_page: OpenPage, operator_state: StorageState, screenshots: Path, fonts: str, text_percent: int
) -> None:
    voice = open_page(look={"fonts": fonts, "text_percent": text_percent}, storage_state=operator_state)
    leave = voice.page.get_by_role("button", name="Sign out")  # which is longer than "Sign in"
    expect(leave).to_be_visible()
    for width in (320, 360, 390, 768) if text_percent == 100 else ():
        resize(voice, width, 800)
        voice.page.screenshot(path=screenshots / f"signed-in-{width}-{fonts}.png")
        box = leave.bounding_box()
        assert box is not None
        assert (voice.overflow, box["x"] + box["width"] <= width, box["height"]) == (0, True, 44)
        assert violations(voice.page) == []
        leave.click(trial=True)  # it could be pressed
    voice.page.evaluate(
        """() => {
            const link = document.querySelector('#link').cloneNode(true);
            document.querySelector('#link').replaceWith(link); // or the page would go on writing its own words there
            link.querySelector('#link-transport').hidden = false;
            link.querySelector('#link-transport').textContent = 'WebRTC · 1234 ms · 100 % lost';
        }"""
    )
    wrong = {}
    roomy = 11 * text_percent  # from this width on the header leaves nothing out
    for width in [*range(NARROWEST, min(roomy, WIDEST), 20), *range(roomy, WIDEST + 1, 80)]:
        resize(voice, width, 800)
        if found := strays(voice, ".bar"):
            wrong[width] = found
    assert wrong == {}
