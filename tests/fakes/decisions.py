"""Parts of a decision that it has, as its kind says."""

from claudomator_py.resources.decisions import ClassificationView, DecisionView, PlacementView, SelectionView


def placement_of(decision: DecisionView) -> PlacementView:
    """The part of a placement."""
    assert decision.placement is not None, decision.kind
    return decision.placement


def selection_of(decision: DecisionView) -> SelectionView:
    """The part of a decision on a specialist."""
    assert decision.selection is not None, decision.kind
    return decision.selection


def classification_of(decision: DecisionView) -> ClassificationView:
    """Where the tier comes from, of a tier or a placement."""
    assert decision.classification is not None, decision.kind
    return decision.classification
