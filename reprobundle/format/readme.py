"""The text that tells a person with only unzip, zstd and b3sum how to read a bundle."""

from __future__ import annotations

README = b"""\
This is a reprobundle: one run of a PyTorch program, sealed together with what is
needed to run it again elsewhere and to compare the results.

WHAT IS INSIDE

  project/        the program's own files, as they were run
  inputs/         data files it read inside its project
  stand-ins/      samples in place of data files that are not here
  external/       data files it read from elsewhere
  lock/           the Python environment it ran in
  policy.json     how much results may differ, fixed before anyone replayed it
  runs/1/         the reference: what the run was (record.json), wrote and printed
  runs/2/ ...     further runs on the same machine
  B3SUMS          BLAKE3 digest of every file above
  manifest.json   size, role and digest of every file; its own digest is the bundle's id
  signatures/     signatures added later, if any
  acceptance/     statements of people who accept the result, if any
  replays/        runs on other machines added later, if any

Do not run anything in here that you do not trust: it is a program like any other.

HOW TO CHECK IT WITHOUT THE reprobundle PROGRAM

You need unzip, zstd and b3sum. Put the name of the file in place of BUNDLE.

1. Unpack it into a new folder and go there:

       unzip -q BUNDLE -d unpacked
       cd unpacked

2. Large files are stored compressed, with .zst behind their name. Decompress each one
   that B3SUMS lists by its plain name:

       cut -c 67- B3SUMS | while IFS= read -r name; do
         test -e "$name" || zstd -q -d "$name.zst"
       done

3. Compare every file with its digest. Each line must end in OK:

       b3sum --check B3SUMS

4. Compare the bundle's id with the one you were given, by a way you trust:

       b3sum --no-names manifest.json

What lies in signatures/, acceptance/ and replays/ is outside the seal. A replay is
named by the digest of its record: b3sum of replays/ID/record.json is ID, and the record
holds the digests of the files beside it. acceptance/ID.json is named by its own.

A signature is one of OpenSSH. Its name, ID.DIGEST.sig, starts with the digest of what
it signs: the manifest, the record of a replay, or a statement in acceptance/. With FILE
a list of lines "NAME KEYTYPE KEY", for the manifest:

  ssh-keygen -Y verify -f FILE -I NAME -n reprobundle \\
    -s signatures/ID.DIGEST.sig < manifest.json
"""
