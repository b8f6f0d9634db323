"""A real Chromium for the tests, and what they all ask of a page."""

import os
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]


def path():
    """Where the browser is: $CHROMIUM, or the first of the usual names on the path."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.fail(
            "no browser: install Chromium (Debian, Ubuntu: apt-get install chromium; Fedora: dnf install chromium; "
            "macOS: brew install --cask chromium), or name one in the variable CHROMIUM",
            pytrace=False,
        )
    return found


@contextmanager
def browser():
    with sync_playwright() as playwright:
        # A container's root has no sandbox; the pages are our own.
        running = playwright.chromium.launch(executable_path=path(), args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(running, file, **options):
    """A page from a file, without a network; it must not complain, nor ask for anything."""
    context = running.new_context(offline=True, viewport={"width": 1200, "height": 900}, **options)
    page = context.new_page()
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    try:
        yield page
        assert not complaints, complaints
        asked = [url for url in requests if url != file.as_uri() and not url.startswith("data:")]
        assert not asked, f"the page asks for {asked}"
    finally:
        context.close()
