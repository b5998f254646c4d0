"""Pages of evaluations: self-contained HTML, with charts."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from corpusveil.evaluation.attacks.risk_curve import AtRisk, Point
from corpusveil.evaluation.report.line_charts import legend, line_chart
from corpusveil.transforms.release.pages import environment


def render_curve(points: Sequence[Point], risks: Sequence[AtRisk], note: str) -> str:
    """Return the page of a curve. It holds public data only."""
    names = list(dict.fromkeys(point.mechanism for point in points))
    retained = {
        name: [(point.epsilon, point.retention) for point in points if point.mechanism == name] for name in names
    }
    recovered = {
        name: [(point.epsilon, point.risk) for point in points if point.mechanism == name and point.risk is not None]
        for name in names
    }
    page = environment("corpusveil.evaluation.report", "curve.html").get_template("curve.html")
    return page.render(
        note=note,
        retention=Markup(line_chart(retained, "epsilon", "unchanged", top=1.0)),  # noqa: S704 - escaped where it is made
        risk=Markup(line_chart(recovered, "epsilon", "recovered", top=1.0)),  # noqa: S704
        legend=Markup(legend(names)),  # noqa: S704
        points=points,
        risks=risks,
        figure=lambda value: "–" if value is None else f"{value:.4g}",
    )
