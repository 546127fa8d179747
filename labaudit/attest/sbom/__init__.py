"""What is inside an image or a harness, to bills of materials in CycloneDX 1.6 and SPDX 2.3.

    component       one package, and the thing a bill is about
    image_tree      a folder, a tar or a docker-save archive as one view of files
    image_packages  dpkg, apk and Python distributions found in that view
    lockfiles       the pinned dependencies of a harness
    cyclonedx_bom   components to CycloneDX, by cyclonedx-python-lib, validated
    spdx_bom        components to SPDX
    documents       the files under sbom/, and what is missing with its reason

The image itself is read; a list that somebody wrote about it is not taken for it.
"""

from labaudit.attest.sbom.component import Component, SbomSubject
from labaudit.attest.sbom.documents import SbomReport, describe_harness, describe_image, write_documents

__all__ = ["Component", "SbomReport", "SbomSubject", "describe_harness", "describe_image", "write_documents"]
