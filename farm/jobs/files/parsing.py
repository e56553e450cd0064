"""The whole way from bytes to a checked job."""

from collections.abc import Mapping

from farm.jobs.files.checking import check
from farm.jobs.files.document import Document, check_bounds
from farm.jobs.files.normalise import normalise
from farm.jobs.files.problems import InvalidFileError, Problem, refusal
from farm.jobs.files.reading import read
from farm.jobs.files.references import Substitution, effective_params
from farm.jobs.files.spec import JobSpec

_NO_PARAMS: Mapping[str, object] = {}


def parse(
    body: bytes, *, content_type: str | None, params: Mapping[str, object] = _NO_PARAMS
) -> JobSpec:
    """Read, fill in and check a job file.

    Args:
        body: The file, YAML or JSON in UTF-8.
        content_type: As sent; None, or one that says neither, leaves it to the first character.
        params: Values in the place of those the file declares under `params`.

    Returns:
        The job with every default filled in.

    Raises:
        TooLargeError: Over 1,000,000 bytes.
        InvalidInputError: With `problems` in its context, at most 20: each a `pointer` into the
            file as written, its `line` (YAML only), a `detail`, and the `nearest` known word.
    """
    document = Document(value=None)
    try:
        document = read(body, content_type=content_type)
        return _checked(document, params)
    except InvalidFileError as error:
        raise refusal(error.problems, document.line_of) from None


def _checked(document: Document, given: Mapping[str, object]) -> JobSpec:
    written = document.value
    if not isinstance(written, dict):
        raise InvalidFileError(Problem(path=(), detail="a job file is a mapping of keys to values"))
    params, problems = effective_params(written.get("params"), given)
    substitution = Substitution(params)
    filled = {
        key: params if key == "params" else substitution.fill(value, (key,))
        for key, value in written.items()
    }
    check_bounds(filled)
    job = normalise(filled)
    spec, found = check(job, substitution.typed)
    problems = [*substitution.problems, *problems, *job.problems, *found]
    if spec is None or problems:
        raise InvalidFileError(*problems)
    return spec
