"""The command line of a lean and quiet Chromium."""

_FEATURE_SWITCH = "--disable-features="

QUIET = (
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-quic",
    "--disable-sync",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-first-run",
    "--no-pings",
)
_NOT_NEEDED = (
    # Each window of full Chromium starts a renderer for these, of some 50 MB.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    # A renderer kept ready for each context that will never need a second one.
    "SpareRendererForSitePerProcess",
    # Asks a server of Google's what the fields of each form are, with the pages' own way out.
    "AutofillServerCommunication",
)


def disabled_by(command_line: list[str]) -> tuple[str, ...]:
    """Return the features that a started browser was told to leave off.

    Chromium obeys only the last such switch, so what Playwright says has to be said again with
    ours; which features these are depends on its version.
    """
    said = [
        arg.removeprefix(_FEATURE_SWITCH) for arg in command_line if arg.startswith(_FEATURE_SWITCH)
    ]
    return tuple(name for name in said[-1].split(",") if name) if said else ()


def arguments(*, shell: bool, disabled: tuple[str, ...]) -> list[str]:
    """Return what to add to Playwright's own arguments; `disabled` are the features it named."""
    if shell:
        return list(QUIET)
    names = dict.fromkeys((*disabled, *_NOT_NEEDED))
    return [*QUIET, _FEATURE_SWITCH + ",".join(names)]
