"""Fitted scikit-learn models of all kinds that skl2onnx converts, and what each output means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["CASES", "Case", "data"]

PROBABLE = ("predict", "predict_proba")
SCORED = ("predict", "decision_function")


@dataclass(frozen=True)
class Case:
    """model: not fitted. methods: of the fitted model, one for each output.

    target: column of `data()`; features: which of `data()` the model reads.
    """

    model: Any
    methods: tuple[str, ...]
    target: str = "three"
    features: str = "x"
    options: Mapping[str, Any] = field(default_factory=dict)


@cache
def data() -> dict[str, np.ndarray]:
    """Irises, moved a little so that no two are equal: features, classes, numbers to predict.

    texts are two columns of words, lines one of sentences, names the classes by name.
    """
    features, three = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).normal(0, 0.02, features.shape)
    x = (features + noise).astype(np.float32)
    missing = x.copy()
    missing[::7, 1] = np.nan
    bins = np.digitize(x[:, 2:], [1, 2, 4, 5]).astype(np.float32)
    words = np.array(["low", "middle", "high", "very high", "none"], object)[bins.astype(int)]
    number = x @ [1, 2, -1, 0.5] + np.sin(3 * x[:, 0])
    return {
        "x": x,
        "missing": missing,
        "categories": np.concatenate([x[:, :2], bins], axis=1),
        "texts": words,
        "lines": np.array([f"{a}, the {b} & {a}" for a, b in words], object),
        "names": np.array(["setosa", "versicolor", "virginica"])[three],
        "three": three,
        "two": (three == 1).astype(np.int64),
        "number": number,
        "numbers": np.stack([number, number**2], axis=1),
    }


def _small(**more: Any) -> dict[str, Any]:
    return {"n_estimators": 8, "random_state": 0, **more}


def _pair() -> list[tuple[str, Any]]:
    return [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=3, random_state=0))]


_LAYER = {"hidden_layer_sizes": (8,), "max_iter": 400, "random_state": 0}
_HISTOGRAM = {"max_iter": 10, "random_state": 0}

CASES: dict[str, Case] = {
    "logistic, two classes": Case(
        make_pipeline(StandardScaler(), LogisticRegression()), PROBABLE, "two"
    ),
    "logistic": Case(make_pipeline(StandardScaler(), LogisticRegression()), PROBABLE),
    "logistic by SGD": Case(
        make_pipeline(MinMaxScaler(), SGDClassifier(loss="log_loss", random_state=0)), PROBABLE
    ),
    "hinge by SGD": Case(SGDClassifier(random_state=0), SCORED),
    "ridge classes": Case(RidgeClassifier(), SCORED),
    "linear": Case(LinearRegression(), ("predict",), "number"),
    "linear, two targets": Case(LinearRegression(), ("predict",), "numbers"),
    "ridge": Case(Ridge(), ("predict",), "number"),
    "lasso": Case(Lasso(0.01), ("predict",), "number"),
    "forest, two classes": Case(RandomForestClassifier(**_small()), PROBABLE, "two"),
    "forest": Case(RandomForestClassifier(**_small()), PROBABLE),
    "forest of numbers": Case(RandomForestRegressor(**_small()), ("predict",), "number"),
    "forest, two targets": Case(RandomForestRegressor(**_small()), ("predict",), "numbers"),
    "extra trees": Case(ExtraTreesClassifier(**_small()), PROBABLE),
    "boosting, two classes": Case(GradientBoostingClassifier(**_small()), PROBABLE, "two"),
    "boosting": Case(GradientBoostingClassifier(**_small()), PROBABLE),
    "boosting of numbers": Case(GradientBoostingRegressor(**_small()), ("predict",), "number"),
    "histograms, two classes": Case(
        HistGradientBoostingClassifier(**_HISTOGRAM), PROBABLE, "two", "missing"
    ),
    "histograms": Case(HistGradientBoostingClassifier(**_HISTOGRAM), PROBABLE, "three", "missing"),
    "histograms of numbers": Case(
        HistGradientBoostingRegressor(**_HISTOGRAM), ("predict",), "number", "missing"
    ),
    "tree": Case(DecisionTreeClassifier(max_depth=4, random_state=0), PROBABLE),
    "tree, two classes": Case(DecisionTreeClassifier(max_depth=3, random_state=0), PROBABLE, "two"),
    "deep tree of numbers": Case(DecisionTreeRegressor(random_state=0), ("predict",), "number"),
    "AdaBoost": Case(AdaBoostClassifier(n_estimators=5, random_state=0), PROBABLE),
    "AdaBoost of numbers": Case(
        AdaBoostRegressor(n_estimators=5, random_state=0), ("predict",), "number"
    ),
    "bagging": Case(BaggingClassifier(n_estimators=5, random_state=0), PROBABLE),
    "stacking": Case(StackingClassifier(_pair()), PROBABLE),
    "voting": Case(VotingClassifier(_pair(), voting="soft", flatten_transform=False), PROBABLE),
    "SVC, two classes": Case(SVC(), SCORED, "two"),
    "SVC": Case(SVC(), SCORED),
    "SVC of degree 3": Case(SVC(kernel="poly"), SCORED),
    "SVC, linear": Case(SVC(kernel="linear"), SCORED),
    "SVC, sigmoid": Case(SVC(kernel="sigmoid", gamma=0.01), SCORED),
    "SVC, one against one": Case(SVC(decision_function_shape="ovo"), SCORED),
    "SVC, two probabilities": Case(SVC(probability=True, random_state=0), PROBABLE, "two"),
    "SVC, probabilities": Case(SVC(probability=True, random_state=0), PROBABLE),
    "NuSVC, probabilities": Case(NuSVC(nu=0.1, probability=True, random_state=0), PROBABLE),
    "LinearSVC": Case(LinearSVC(random_state=0), SCORED),
    "calibrated": Case(CalibratedClassifierCV(LinearSVC(random_state=0), cv=2), PROBABLE),
    "SVR": Case(SVR(), ("predict",), "number"),
    "NuSVR": Case(NuSVR(), ("predict",), "number"),
    "one class": Case(OneClassSVM(), SCORED),
    "neighbours": Case(KNeighborsClassifier(3), PROBABLE),
    "neighbours of numbers": Case(KNeighborsRegressor(3), ("predict",), "number"),
    "k-means": Case(KMeans(3, n_init=2, random_state=0), ("predict", "transform")),
    "PCA": Case(PCA(2), ("transform",)),
    "PCA, whitened": Case(PCA(2, whiten=True), ("transform",)),
    "truncated SVD": Case(TruncatedSVD(2, random_state=0), ("transform",)),
    "perceptron": Case(make_pipeline(StandardScaler(), MLPClassifier(**_LAYER)), PROBABLE),
    "perceptron, two classes": Case(MLPClassifier(activation="tanh", **_LAYER), PROBABLE, "two"),
    "perceptron of numbers": Case(MLPRegressor(**_LAYER), ("predict",), "number"),
    "one-hot columns": Case(
        make_pipeline(
            make_column_transformer((OneHotEncoder(), [2, 3]), (StandardScaler(), [0, 1])),
            LogisticRegression(),
        ),
        PROBABLE, "three", "categories",
    ),
    "ordinal columns": Case(
        make_pipeline(
            make_column_transformer((OrdinalEncoder(), [2, 3]), ("passthrough", [0, 1])),
            DecisionTreeClassifier(max_depth=3, random_state=0),
        ),
        PROBABLE, "three", "categories",
    ),
    "one-hot texts": Case(
        make_pipeline(OneHotEncoder(), LogisticRegression()), PROBABLE, "names", "texts"
    ),
    "ordinal texts": Case(
        make_pipeline(OrdinalEncoder(), RandomForestClassifier(**_small())),
        PROBABLE, "three", "texts",
    ),
    "logistic, named": Case(LogisticRegression(), PROBABLE, "names"),
    "forest, named": Case(RandomForestClassifier(**_small()), PROBABLE, "names"),
    "SVC, named": Case(SVC(), SCORED, "names"),
    "counted words": Case(
        make_pipeline(CountVectorizer(token_pattern="[a-z]+"), LogisticRegression()),
        PROBABLE, "three", "lines",
    ),
    "weighted words": Case(
        make_pipeline(TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2)),
                      LogisticRegression()),
        PROBABLE, "three", "lines",
    ),
    "imputed": Case(
        make_pipeline(SimpleImputer(), LogisticRegression()), PROBABLE, "three", "missing"
    ),
    "imputed medians": Case(
        make_pipeline(SimpleImputer(strategy="median"), RobustScaler()), ("transform",),
        "three", "missing",
    ),
    "rows of length 1": Case(Normalizer(), ("transform",)),
    "rows of sum 1": Case(Normalizer("l1"), ("transform",)),
    "rows of maximum 1": Case(Normalizer("max"), ("transform",)),
    "maximum of sizes": Case(MaxAbsScaler(), ("transform",)),
    "over a threshold": Case(Binarizer(threshold=2.5), ("transform",)),
    "bins": Case(KBinsDiscretizer(3, encode="ordinal"), ("transform",)),
    "polynomials": Case(PolynomialFeatures(2), ("transform",)),
    "powers": Case(PowerTransformer(), ("transform",)),
    "Gaussian Bayes": Case(GaussianNB(), PROBABLE),
    "Bernoulli Bayes": Case(BernoulliNB(binarize=2.0), PROBABLE),
    "multinomial Bayes": Case(MultinomialNB(), PROBABLE),
    "complement Bayes": Case(ComplementNB(), PROBABLE),
    "linear discriminants": Case(LinearDiscriminantAnalysis(), PROBABLE),
    "quadratic discriminants": Case(QuadraticDiscriminantAnalysis(), PROBABLE),
    "isolation forest": Case(IsolationForest(**_small()), SCORED),
}  # fmt: skip
