"""What the simulated agent said and did."""

from collections.abc import Iterator

from claudomator_py.agents.jsonlines import Event, amount_of, count_of, event_of, text_of
from claudomator_py.agents.transcript import EventTranscript, shown, tokens_text
from claudomator_py.domain.run import Part


class SimulatedTranscript(EventTranscript):
    """Reads one run. What it does not know, it shows as it is."""

    def event(self, event: Event) -> Iterator[Part]:
        """What an event says."""
        match event.get("type"):
            case "start":
                yield Part("notice", f"begins: attempt {shown(event.get('attempt'))}, simulated")
            case "progress" if "seconds_left" in event:
                yield Part("notice", f"works, {shown(event.get('seconds_left'))} s left")
            case "denied":
                yield Part("notice", f"denied: {shown(event.get('tool'))}({shown(event.get('input'))})")
            case "end":
                failed = text_of(event, "error")
                yield Part("error" if failed else "message", failed or text_of(event, "text") or shown(event))
                tokens = event_of(event, "tokens")
                cost_usd = amount_of(event, "cost_usd")
                if used := tokens_text(count_of(tokens, "input"), count_of(tokens, "output"), cost_usd):
                    yield Part("usage", used)
            case _:
                yield Part("text", text_of(event, "text") or shown(event))
