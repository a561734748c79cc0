"""Ways to hand spans to those who collect them: OpenTelemetry's protocol over HTTP."""
