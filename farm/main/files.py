"""Where the files of jobs are kept, and whether coordinators that share a ledger share that."""

from farm.config import Settings
from farm.errors import ConflictError, StoreUnavailableError
from farm.main.stores import without_extra
from farm.stores.artifacts import DirectoryArtifacts
from farm.stores.ports.artifacts import ArtifactStore
from farm.stores.ports.sharing import SharedLedger


async def artifacts_of(settings: Settings) -> ArtifactStore:
    """Open what the settings ask for; a bucket is written to, and read.

    Raises:
        InvalidInputError: If they ask for a bucket, and its client is not installed.
        StoreUnavailableError: If the directory or the bucket can't be used.
    """
    kept = settings.artifacts
    if kept.url is None:
        return DirectoryArtifacts(
            settings.artifacts_dir,
            max_bytes=kept.max_bytes,
            min_free_bytes=kept.min_free_bytes,
            min_free_inodes=kept.min_free_inodes,
        )
    try:
        from farm.stores.artifacts.bucket import BucketArtifacts, connect
    except ModuleNotFoundError as error:
        raise without_extra(error, "obstore", "s3", "FARM_ARTIFACTS__URL") from error
    bucket = BucketArtifacts(
        connect(kept.url, answer_s=kept.answer_s, allow_http=kept.allow_http),
        max_bytes=kept.max_bytes,
        answer_s=kept.answer_s,
    )
    try:
        await bucket.check()
    except StoreUnavailableError as error:
        raise StoreUnavailableError(
            f"{kept.url} can't be used (FARM_ARTIFACTS__URL, FARM_ARTIFACTS__ALLOW_HTTP for plain"
            f" HTTP, AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID …): {error.detail}"
        ) from error
    return bucket


async def same_files(files: ArtifactStore, shared: SharedLedger) -> None:
    """Make sure that files are kept where the other coordinators keep theirs.

    Raises:
        ConflictError: If this is another directory or bucket.
        StoreUnavailableError: If it can't be read or written.
    """
    number = await files.number()
    if await shared.agreed_on("files", number) != number:
        raise ConflictError(
            "this is not where the other coordinators of this ledger keep files: set"
            " FARM_ARTIFACTS__DIR or FARM_ARTIFACTS__URL to what all share"
        )
