"""Data: where it comes from, how it is split, and in which units a network sees it."""

from weightscape.data import toy as toy
from weightscape.data.batch import Batch as Batch
from weightscape.data.catalogue import Description as Description
from weightscape.data.catalogue import describe as describe
from weightscape.data.catalogue import load as load
from weightscape.data.catalogue import load_test as load_test
from weightscape.data.catalogue import names as names
from weightscape.data.dataset import Dataset as Dataset
from weightscape.data.dataset import from_arrays as from_arrays
from weightscape.data.range import TrainingRange as TrainingRange
from weightscape.data.scaling import Scaling as Scaling
from weightscape.data.schema import TableSchema as TableSchema
from weightscape.data.table import from_csv as from_csv
