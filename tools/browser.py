"""Pages of the site in headless Chromium: width on a phone, axe-core's rules, pictures of pages.

``python -m tools.browser PAGE... --out FOLDER`` takes pictures at a desk's and a phone's width,
light and dark.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PHONE, DESK = 390, 1280
THEMES = ("light", "dark")
# Pages with one listing each, which share a template: some are looked at for all.
ALIKE, SOME = "source/", 12
AXE = Path(__file__).resolve().parents[1] / "node_modules" / "axe-core" / "axe.min.js"
# What axe-core looks at. A theme changes colours and nothing else.
RULES: dict[str, dict[str, Any]] = {
    "light": {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
}


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser, driven by selenium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()


def size(driver: Any, width: int, height: int = 900) -> None:
    """Let pages have a size, narrower than a window may be."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def show(driver: Any, file: Path, theme: str) -> None:
    """Open a page in a theme."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(file.as_uri())


def violations(driver: Any, theme: str) -> list[str]:
    """What axe-core finds on the page that is open, a line for each rule."""
    result = driver.execute_async_script(
        "const [rules, done] = arguments;"
        "axe.run(document, rules).then(done, e => done({error: String(e)}))",
        RULES[theme],
    )
    if "error" in result:
        return [result["error"]]
    found = []
    for rule in result["violations"]:
        first = rule["nodes"][0]
        found.append(
            f"{rule['id']} ({len(rule['nodes'])}): {first['html'][:110]!r} {first['target']}"
        )
    return found


def too_wide(driver: Any) -> str | None:
    """The first element that makes a page wider than the screen."""
    return driver.execute_script(
        """const wide = document.documentElement.scrollWidth;
        if (wide <= window.innerWidth) return null;
        for (const e of document.querySelectorAll('main *, article *, body *')) {
          const r = e.getBoundingClientRect();
          if (r.right > window.innerWidth + 1 && r.width > 0) {
            return wide + ' px: ' + e.outerHTML.slice(0, 110);
          }
        }
        return wide + ' px';"""
    )


def chosen(site: Path, pattern: str) -> list[Path]:
    """The pages to look at: all, but only some of those that are alike."""
    pages = sorted(site.glob(pattern))
    alike = [p for p in pages if p.relative_to(site).as_posix().startswith(ALIKE)]
    return [p for p in pages if p not in set(alike)] + alike[:: max(1, len(alike) // SOME)]


def check(site: Path, pattern: str, axe: Path = AXE) -> Iterator[str]:
    """What is wrong with pages as they are shown.

    Args:
        site: the folder of the site.
        pattern: which pages to look at, as for ``Path.glob``.
        axe: the file of axe-core.
    """
    script = axe.read_text()
    pages = chosen(site, pattern)
    with chromium() as driver:
        driver.set_script_timeout(240)
        for file in pages:
            name = file.relative_to(site)
            size(driver, PHONE)
            for theme in THEMES:
                show(driver, file, theme)
                if theme == THEMES[0] and (problem := too_wide(driver)):
                    yield f"{name}: wider than {PHONE} px: {problem}"
                driver.execute_script(script)
                for problem in violations(driver, theme):
                    yield f"{name} ({theme}): {problem}"
    print(f"{len(pages)} pages looked at")


def pictures(files: list[Path], out: Path) -> Iterator[Path]:
    """Pictures of the first screen of pages."""
    out.mkdir(parents=True, exist_ok=True)
    with chromium() as driver:
        for file in files:
            for width in (DESK, PHONE):
                size(driver, width)
                for theme in THEMES:
                    show(driver, file, theme)
                    target = out / f"{file.parent.name}-{file.stem}-{width}-{theme}.png"
                    driver.save_screenshot(str(target))
                    yield target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.browser", description=__doc__)
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    for picture in pictures([page.resolve() for page in arguments.pages], arguments.out):
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
