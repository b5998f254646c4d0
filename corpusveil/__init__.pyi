# Written by scripts/public_names.py, which 'make lint' runs.

from corpusveil.budget import Budget as Budget
from corpusveil.collocations.collocation_table import Collocations as Collocations
from corpusveil.collocations.collocation_table import load_collocations as load_collocations
from corpusveil.collocations.count import CountOptions as CountOptions
from corpusveil.collocations.count import count_corpus as count_corpus
from corpusveil.collocations.measures import Scoring as Scoring
from corpusveil.collocations.score import score_counts as score_counts
from corpusveil.collocations.tokenize import tokenize_corpus as tokenize_corpus
from corpusveil.collocations.training import train_vectors as train_vectors
from corpusveil.collocations.word2vec import Training as Training
from corpusveil.errors import CorpusveilError as CorpusveilError
from corpusveil.errors import NoClosedForm as NoClosedForm
from corpusveil.errors import UserError as UserError
from corpusveil.errors import WorkError as WorkError
from corpusveil.jobs.beam import Beam as Beam
from corpusveil.jobs.local import Local as Local
from corpusveil.jobs.spark import Spark as Spark
from corpusveil.ledger.summary import Ledger as Ledger
from corpusveil.ledger.summary import LedgerCheck as LedgerCheck
from corpusveil.ledger.summary import LedgerSummary as LedgerSummary
from corpusveil.mechanisms import Guarantee as Guarantee
from corpusveil.mechanisms import Mechanism as Mechanism
from corpusveil.mechanisms import make_mechanism as mechanism
from corpusveil.mechanisms import names as mechanism_names
from corpusveil.mechanisms.cmp import Cmp as Cmp
from corpusveil.mechanisms.custext import CusText as CusText
from corpusveil.mechanisms.diffractor_exponential import DiffractorExponential as DiffractorExponential
from corpusveil.mechanisms.diffractor_geometric import DiffractorGeometric as DiffractorGeometric
from corpusveil.mechanisms.mahalanobis import Mahalanobis as Mahalanobis
from corpusveil.mechanisms.ring_geometric import RingGeometric as RingGeometric
from corpusveil.mechanisms.santext import SanText as SanText
from corpusveil.mechanisms.syntf import SynTf as SynTf
from corpusveil.mechanisms.tem import Tem as Tem
from corpusveil.mechanisms.vickrey import VickreyCmp as VickreyCmp
from corpusveil.mechanisms.vickrey import VickreyMahalanobis as VickreyMahalanobis
from corpusveil.passages.build import build_store as build_store
from corpusveil.passages.passage_exchange import PassageExchange as PassageExchange
from corpusveil.passages.store import Store as Store
from corpusveil.passages.store import load_store as load_store
from corpusveil.pipelines.python_calls import compare as compare
from corpusveil.pipelines.python_calls import plan as plan
from corpusveil.pipelines.python_calls import preview as preview
from corpusveil.pipelines.python_calls import privatize_corpus as privatize_corpus
from corpusveil.pipelines.python_calls import release as release
from corpusveil.sampling.keys import Key as Key
from corpusveil.spaces import Space as Space
from corpusveil.spaces import demo_space as demo_space
from corpusveil.spaces import load_space as load_space
from corpusveil.spaces.build import build_space as build_space
from corpusveil.spaces.vectors import Vectors as Vectors
from corpusveil.spaces.vectors import read_vectors as read_vectors
from corpusveil.text.policy import TextPolicy as TextPolicy
from corpusveil.text.spans import SpanPolicy as SpanPolicy
from corpusveil.transforms.columns import expr as expr
from corpusveil.transforms.columns import register_sql as register_sql
from corpusveil.transforms.identities import RowNumbers as RowNumbers
from corpusveil.transforms.release.corpus import Outcome as Outcome
from corpusveil.transforms.release.passage_release import PassageRelease as PassageRelease
from corpusveil.transforms.release.planning import Forecast as Forecast
from corpusveil.transforms.release.release import Release as Release
from corpusveil.transforms.release.verification import Verification as Verification
from corpusveil.transforms.release.verification import verify as verify
from corpusveil.transforms.table import masker as masker
from corpusveil.transforms.table import privatize as privatize
from corpusveil.transforms.table import privatize_table as privatize_table
from corpusveil_evaluate.attacks.held_out import HeldOutAudit as HeldOutAudit
from corpusveil_evaluate.attacks.held_out import LawFit as LawFit
from corpusveil_evaluate.attacks.held_out import audit_fit as audit_fit
from corpusveil_evaluate.attacks.held_out import audit_held_out as audit_held_out
from corpusveil_evaluate.attacks.held_out import hold_out as hold_out
from corpusveil_evaluate.audits.guarantee_audit import Audit as Audit
from corpusveil_evaluate.audits.guarantee_audit import audit as audit
from corpusveil_evaluate.readers.content_words import content_weights as content_weights
from corpusveil_evaluate.readers.ladder import Ladder as Ladder
from corpusveil_evaluate.readers.ladder import reader_ladder as reader_ladder
from corpusveil_evaluate.report.beside_original import evaluate_release as evaluate_release
from corpusveil_evaluate.report.findings import Findings as Findings
from corpusveil_evaluate.report.release_page import write_report as write_report

__version__: str
__all__ = [
    "Audit",
    "Beam",
    "Budget",
    "Cmp",
    "Collocations",
    "CorpusveilError",
    "CountOptions",
    "CusText",
    "DiffractorExponential",
    "DiffractorGeometric",
    "Findings",
    "Forecast",
    "Guarantee",
    "HeldOutAudit",
    "Key",
    "Ladder",
    "LawFit",
    "Ledger",
    "LedgerCheck",
    "LedgerSummary",
    "Local",
    "Mahalanobis",
    "Mechanism",
    "NoClosedForm",
    "Outcome",
    "PassageExchange",
    "PassageRelease",
    "Release",
    "RingGeometric",
    "RowNumbers",
    "SanText",
    "Scoring",
    "Space",
    "SpanPolicy",
    "Spark",
    "Store",
    "SynTf",
    "Tem",
    "TextPolicy",
    "Training",
    "UserError",
    "Vectors",
    "Verification",
    "VickreyCmp",
    "VickreyMahalanobis",
    "WorkError",
    "__version__",
    "audit",
    "audit_fit",
    "audit_held_out",
    "build_space",
    "build_store",
    "compare",
    "content_weights",
    "count_corpus",
    "demo_space",
    "evaluate_release",
    "expr",
    "hold_out",
    "load_collocations",
    "load_space",
    "load_store",
    "masker",
    "mechanism",
    "mechanism_names",
    "plan",
    "preview",
    "privatize",
    "privatize_corpus",
    "privatize_table",
    "read_vectors",
    "reader_ladder",
    "register_sql",
    "release",
    "score_counts",
    "tokenize_corpus",
    "train_vectors",
    "verify",
    "write_report",
]
