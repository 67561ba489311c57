"""The rules of the container, the names and the manifest, by their number in spec.md.

Every error that the format raises carries one of these numbers; a test holds the two
together.
"""

from __future__ import annotations

RULES: dict[str, str] = {
    # Container
    "R-4.1": (
        "A bundle is a regular file that is a ZIP file from its first byte to its "
        "last, with the end record where the file ends."
    ),
    "R-4.2": (
        "Nothing follows the end record: no comment, stated or present, and no byte."
    ),
    "R-4.3": (
        "ZIP64 records and fields are present exactly where a size, an offset or a "
        "count needs them, and all end records agree with the directory."
    ),
    "R-4.4": (
        "There are at most 200,000 entries and a directory of at most 64 MiB; a reader "
        "compares the stated numbers before it allocates memory for them."
    ),
    "R-4.5": (
        "The directory holds exactly as many records as the end record states, fills "
        "its stated size, and ends where the end records start."
    ),
    "R-4.6": "Every entry is stored: compression method 0.",
    "R-4.7": (
        "The flags of every entry are 0x0800 (the name is UTF-8) and nothing else: no "
        "encryption, no data descriptor."
    ),
    "R-4.8": (
        "Versions, time, date, disk number and attributes have the one value that the "
        "byte tables give; an entry is a regular file of mode 0644, never a link, a "
        "device or a folder, and has no comment."
    ),
    "R-4.9": (
        "The directory has no extra field but ZIP64; a local header has besides it at "
        "most one padding field (0x4246) of at most 67 bytes, all zero."
    ),
    "R-4.10": "A local header says the same as the directory's record of its entry.",
    "R-4.11": (
        "Each byte before the directory belongs to exactly one entry: the first starts "
        "at byte 0, each next one where the last ended, in the directory's order, and "
        "the directory where the last one ended."
    ),
    "R-4.12": (
        "In the directory, compressed size and size of an entry are equal, and written "
        "in the form that their value needs."
    ),
    "R-4.13": (
        "Content of more than 16 KiB that is stored as it is starts at a multiple of "
        "64 bytes."
    ),
    "R-4.14": "Entry names are UTF-8.",
    "R-4.15": (
        "The file holds manifest.json, and for every member that the manifest lists an "
        "entry with its path, or with its path and .zst behind it; a part of a bundle "
        "(R-4.41) for those that it does not name as absent."
    ),
    "R-4.16": "Every entry before manifest.json belongs to a member of the manifest.",
    "R-4.17": (
        "The entries before manifest.json lie in the order in which the manifest lists "
        "their members."
    ),
    "R-4.18": (
        "No entry could belong to two members: the name of a compressed entry is not "
        "the path of another member."
    ),
    "R-4.19": (
        "An entry stored as it is has the size of its member; a compressed one has at "
        "most that and 64 KiB for each chunk."
    ),
    "R-4.20": (
        "A compressed entry consists of zstd frames, each with a content checksum, "
        "without a dictionary, with its content size stated, a window of at most "
        "8 MiB, at most 4,096 blocks and at most 4 MiB and 64 KiB of stored bytes."
    ),
    "R-4.21": (
        "Each frame holds one chunk: 4 MiB of plain content, the last one the rest; "
        "the frames fill the entry exactly."
    ),
    "R-4.22": "Each frame decodes to the number of bytes that it states.",
    "R-4.23": (
        "README.txt, B3SUMS, manifest.json, records, locks, the policy, and every "
        "member of at most 16 KiB are stored as they are."
    ),
    "R-4.24": (
        "The CRC-32 of an entry is that of its stored bytes; a reader compares it for "
        "manifest.json on opening, and for every entry when asked for a deep check."
    ),
    "R-4.25": "The content of a member has the BLAKE3 digest that the manifest states.",
    "R-4.26": (
        "Every entry behind manifest.json is signatures/NAME or acceptance/ID.json, or "
        "lies in replays/ID/, where ID is 64 lower-case hexadecimal digits; of a part "
        "the first one is part.json."
    ),
    "R-4.27": (
        "The entries of a replay lie side by side, record.json first and the others "
        "sorted by the bytes of their names; each is stored as it is. A replay file "
        "holds one replay or more, signatures over them, and nothing else."
    ),
    "R-4.28": (
        "The BLAKE3 digest of a replay's record.json is the ID it is named by, and so "
        "is that of an acceptance record."
    ),
    "R-4.29": (
        "A change behind the seal keeps the bytes it overwrites in NAME.journal beside "
        "the bundle until it is complete. While a usable journal is there, the bundle "
        "is what it was before: a reader takes those bytes from the journal, and the "
        "next change first puts them back."
    ),
    "R-4.30": "A reader gives out at once no more bytes than its caller asked for.",
    "R-4.31": "A path or replay that is asked for is in the bundle.",
    "R-4.32": (
        "A journal is applied only if its digest is right, it keeps bytes behind the "
        "manifest alone, and the bundle holds the manifest for which it was written."
    ),
    "R-4.33": (
        "A signature is an armoured SSH signature of at most 16 KiB over the stored "
        "bytes of manifest.json or of a replay's record.json, made for the namespace "
        "reprobundle, and named signatures/ID.DIGEST.sig: the BLAKE3 digest of what it "
        "signs, and the first 16 digits of its own."
    ),
    "R-4.34": (
        "At most 1,000 replays and 1,000 acceptance records lie in a file; a reader "
        "counts them before it reads one."
    ),
    "R-4.40": (
        "An inline text states name, bundle id, digest, size and number of lines, then "
        "each line with its number and a checksum of both; a reader refuses a text of "
        "which a line is missing, cut or changed, and says which, and one whose file "
        "does not have the digest or the id that it states."
    ),
    "R-4.41": (
        "A file that lacks members of its manifest is a part: directly behind "
        "manifest.json lies part.json, which names the id of the bundle and, in layout "
        "order, exactly the members that lie in the other part, at least one; the "
        "first part, and only that, states name, size and digest of the other."
    ),
    "R-4.42": (
        "Two parts are joined only if they name the same bundle, every member lies in "
        "exactly one of them, and the second has the size and the digest that the "
        "first states; the result is, byte for byte, the bundle that was split."
    ),
    # Names
    "R-5.1": "A name is not empty.",
    "R-5.2": (
        "A name is relative, its components separated by one '/'; none of them is "
        "empty, '.' or '..'."
    ),
    "R-5.3": "A name holds no backslash and no colon.",
    "R-5.4": (
        "A name holds no control, format, surrogate or separator character (Unicode "
        "categories Cc, Cf, Cs, Zl, Zp), so none that hides or turns text."
    ),
    "R-5.5": "A name is in Unicode normalization form C.",
    "R-5.6": (
        "No component ends in a dot or a space, or is a device on Windows (CON, PRN, "
        "AUX, NUL, COM0-9, LPT0-9, CONIN$, CONOUT$), whatever its extension."
    ),
    "R-5.7": (
        "A name has at most 1,024 bytes and 32 components, each of at most 255 bytes. "
        "All names together lie in at most 200,000 folders."
    ),
    "R-5.8": (
        "No two names are equal, or equal but for case or Unicode form (canonical "
        "caseless match), and neither are two spellings of one folder."
    ),
    "R-5.9": "No name is both a file and a folder, also but for case or Unicode form.",
    # Documents and the manifest
    "R-6.1": (
        "A JSON document has at most 64 MiB and 2,000,000 values, counted as commas "
        "and opening brackets outside of strings."
    ),
    "R-6.2": "A JSON document nests at most 64 levels deep.",
    "R-6.3": "No object of a JSON document repeats a key.",
    "R-6.4": (
        "A document is JSON by RFC 8259 in UTF-8 without a byte order mark; NaN and "
        "Infinity are not numbers."
    ),
    "R-6.5": (
        "A manifest states the format reprobundle and a version of which the reader "
        "knows the major number."
    ),
    "R-6.6": (
        "A manifest keeps to its schema, every field and no other; a newer minor "
        "version may add fields, and nothing else."
    ),
    "R-6.7": (
        "A manifest is in canonical form: keys sorted, an indent of one space, fields "
        "of a member left out where they have their default, one line break at the end."
    ),
    "R-6.8": (
        "A bundle has at most 100,000 members, together of at most 2^53 - 1 bytes."
    ),
    "R-6.9": (
        "The first component of a path is a place the layout knows, and the role of a "
        "member belongs there; exactly runs/N/record.json has the role record."
    ),
    "R-6.10": (
        "Members are listed in layout order: by place, within it by the bytes of the "
        "path."
    ),
    "R-6.11": (
        "A member of more than 4 MiB has a chunk digest for each 4 MiB of its content, "
        "any other has none."
    ),
    "R-6.12": (
        "README.txt and B3SUMS are members, and B3SUMS holds exactly one line for each "
        "other member, in the manifest's order: digest, two spaces, path."
    ),
}

DOCUMENT_RULES: dict[str, str] = {
    "R-7.1": "policy.json conforms to schema/policy.schema.json.",
    "R-7.2": (
        "Every record.json conforms to schema/record.schema.json, and every member it "
        "names is there: beside it, or, in a replay, the sealed member that it refers "
        "to, of that size and digest."
    ),
    "R-7.3": "lock/environment.json conforms to schema/lock.schema.json.",
    "R-7.4": (
        "A bundle that can be replayed holds policy.json, lock/environment.json and "
        "runs/1/record.json."
    ),
    "R-7.5": (
        "Every acceptance/ID.json conforms to schema/acceptance.schema.json, is in "
        "canonical form, and names the bundle."
    ),
}
"""Rules for documents, which the packages above the format enforce."""
