"""Labelled snippets: real shapes of secrets and persons, and what only looks like them.

No secret stands here: ``<aN>``, ``<bN>``, ``<hN>``, ``<uN>`` and ``<dN>`` become N
letters and digits, base64, hexadecimal, upper-case and decimal characters drawn with a
fixed seed, and ``~`` is removed, so that no scanner finds anything in this file.
"""

from __future__ import annotations

import random
import re
import string

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "h": "0123456789abcdef",
    "u": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "d": string.digits,
}

# Three parts by dots, as everybody has seen them.
JWT_OF_THE_INTRODUCTION = (
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)

SECRETS = (
    ("github-token", "train.py", 'TOKEN = "ghp~_<a36>"'),
    ("github-token", "a.txt", "github~_pat_<a22>_<a59>"),
    (
        "github-token",
        "setup.sh",
        "git clone https://x-access:gh~s_<a36>@github.com/a/b",
    ),
    ("gitlab-token", ".env", "CI_JOB=glpat~-<a20>"),
    ("huggingface-token", "train.py", "login(token='hf~_<a34>')"),
    ("huggingface-token", "run.ipynb", '"source": ["hub.login(\\"hf~_<a34>\\")\\n"]'),
    ("huggingface-token", "stderr.txt", "HTTPError: invalid token hf~_<a34> for model"),
    ("openai-key", "x.py", 'client = OpenAI(api_key="sk-~proj-<a40>T3Blbk~FJ<a40>")'),
    ("openai-key", "x.py", 'k = "sk-~<a24>T3Blbk~FJ<a24>"'),
    ("anthropic-key", "x.py", 'Anthropic("sk-~ant-api03-<a93>AA")'),
    ("aws-key", "creds", "aws_access_key_id = AK~IA<u16>"),
    ("secret-value", "credentials.ini", "aws_secret~_access_key = <a20>/<a19>"),
    ("google-key", "x.js", 'maps("AI~za<a35>")'),
    ("google-key", "x.json", '{"client_key": "GOCS~PX-<a28>"}'),
    ("azure-key", "x.py", '"AccountName=a;Account~Key=<b86>==;Suffix=core"'),
    ("slack-token", "x.py", 'WebClient("xo~xb-<d12>-<d12>-<a24>")'),
    ("slack-token", "x.sh", "curl https://hooks.slack~.com/services/T<u9>/B<u9>/<a24>"),
    ("stripe-key", "x.py", 'stripe.key = "sk~_live_<a24>"'),
    ("pypi-token", ".pypirc", "password = pypi~-AgEIcHlwaS5vcmc<a80>"),
    ("npm-token", ".npmrc", "//registry.npmjs.org/:_authToken=np~m_<a36>"),
    ("secret-value", "x.sh", "export WANDB_API~_KEY=<h40>"),
    ("password", ".netrc", "machine api.wandb.ai login user password~ <h40>"),
    ("private-key", "id_rsa", "-----BEGIN OPENSSH PRIV~ATE KEY-----\n<b70>\n<b70>"),
    ("private-key", "sa.json", '"key": "-----BEGIN PRIV~ATE KEY-----\\n<b64>\\n<b64>"'),
    ("jwt", "x.txt", "Bearer ey~J<a34>.ey~J<a60>.<a43>"),
    (
        "url-password",
        "requirements.txt",
        "--index-url https~://bob:<a12>@pypi.corp.net/",
    ),
    ("url-password", "db.yaml", "url: postgres~ql://svc:<a16>@10.0.0.5:5432/db"),
    ("password", "config.yaml", "password~: Tr0ub4dor&3-horse"),
    ("password", "x.py", "conn = connect(user='a', password~='Summer2031!')"),
    ("secret-value", "x.json", '{"client_secret~": "<a40>"}'),
    ("secret-value", "x.py", 'API~_KEY = "<a32>"'),
    ("secret-value", "command", '--api-key~="<a32>"'),
    ("secret-value", "x.env", "SECRET~_KEY=<a50>"),
    ("high-entropy", "x.py", 'client = Client("<a40>")'),
    ("high-entropy", "run.ipynb", 'login(\\"<a43>\\")'),
    ("high-entropy", "x.json", '{"access": "<b44>="}'),
    ("high-entropy", "config.yaml", "wandb: <a40>"),
    ("high-entropy", "command", "--login=<a40>"),
    ("high-entropy", "command", "<a40>"),
    ("personal-column", "p.csv", "id,email\n1,ann@lab.org\n2,bo@lab.org\n"),
    ("personal-column", "p.csv", "patient_id;age\nP-00123;40\nP-00124;41\n"),
    ("personal-column", "p.tsv", "x\tDate of birth\n1\t1980-02-03\n2\t1979-12-01\n"),
    (
        "personal-column",
        "p.jsonl",
        '{"Phone": "+49 30 1234"}\n{"Phone": "030 9876"}\n',
    ),
    ("personal-column", "p.json", '[{"last_name": "Meier", "y": 1}]'),
    ("personal-column", "p.csv", "iban,sum\nDE89 3704 0044 0532 0130 00,5\n"),
)

TRAPS = (
    ("train.py", 'revision = "<h40>"'),
    ("record.json", '"blake3": "<h64>"'),
    ("requirements.txt", "numpy==2.1 --hash=sha256:<h64>"),
    ("pylock.toml", 'hashes = {sha256 = "<h64>"}'),
    ("package-lock.json", '"integrity": "sha512-<b86>=="'),
    ("x.json", '{"id": "<h8>-<h4>-4<h3>-a<h3>-<h12>"}'),
    ("run.ipynb", '"image/png": "iVBORw0KGgo<b4000>"'),
    ("run.ipynb", '"id": "<h8>", "execution_count": 3'),
    ("model.txt", "tensor([0.1234, -1.5e-3, 3.14159265358979])"),
    ("x.json", '{"blake3": "<b43>=", "etag": "<a32>"}'),
    ("x.py", 'load("BertForSequenceClassificationLayerNorm12V2Weights")'),
    ("x.py", 'path = "runs/Model_v2/Epoch010/Checkpoint_Best_Val03"'),
    ("config.yaml", "model: facebook/wav2vec2-Large-960h-lv60-Self_Ft3"),
    ("x.py", 'key = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123456789"'),
    ("x.py", 'pattern = "aB1cD2aB1cD2aB1cD2aB1cD2aB1cD2aB1cD2"'),
    ("x.py", 'symbols = "AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQqRrSs"'),
    ("x.py", 'api_key = os.environ["OPENAI_API_KEY"]'),
    ("x.py", "token = tokenizer.encode(text, add_special_tokens=True)"),
    ("x.py", 'tokenizer = "bert-base-uncased-finetuned-2024"'),
    ("x.py", 'pad_token="<|endoftext|>", eos_token="</s>"'),
    ("x.py", "max_new_tokens=256, token_count=10000000000000000"),
    ("x.py", 'password = "changeme"'),
    ("x.py", 'password = getpass.getpass("Password: ")'),
    ("config.yaml", "password: ${DB_PASSWORD}"),
    ("config.yaml", "api_key: <your key here>"),
    (".env", "HF_TOKEN="),
    (".env", "WANDB_API_KEY=your-api-key-goes-here-0123"),
    ("aws.md", "aws_access_key_id = AKIAIOSFODNN7EXA~MPLE"),
    ("aws.ini", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXA~MPLEKEY"),
    ("jwt.md", JWT_OF_THE_INTRODUCTION),
    ("url.md", "https://user:password@host.net/x and ftp://a:{token}@b.net"),
    ("url.py", 'f"https://{user}:{password}@{host}/simple"'),
    ("url.txt", "http://localhost:8080/a@b and https://github.com/a/b@v1:2"),
    ("x.md", "Put a -----BEGIN PRIVATE KEY----- block into the file."),
    ("x.py", 'secret_name = "projects/my-project-123456/secrets/db/versions/7"'),
    ("x.py", 'token_hash = "<h64>"'),
    ("x.py", 'credentials_path = "/home/a/.config/gcloud/adc-2024.json"'),
    ("x.py", "password: str = field(default_factory=str)"),
    ("x.txt", "The password is asked for; the token: a secret that nobody else knows."),
    ("ghp.py", 'prefix = "ghp_"; pattern = r"hf_[A-Za-z]{34}"'),
    ("hf.py", "hf_hub_download(repo_id, filename=hf_file_name_of_the_weights)"),
    ("v.csv", "name,value\nloss,0.5\naccuracy,0.9\n"),
    ("v.csv", "phone,start\nAA,0.1\nIY,0.3\n"),
    ("v.csv", "step,patient_loss,email_rate\n1,0.5,0.1\n"),
    ("v.json", '{"mobile": true, "birthday": null, "model": "net"}'),
)


def expand(snippet: str, seed: int) -> bytes:
    """Return the snippet with its drawn parts."""
    drawn = random.Random(seed)

    def draw(match: re.Match[str]) -> str:
        return "".join(drawn.choices(ALPHABETS[match[1]], k=int(match[2])))

    return re.sub(r"<([abhud])(\d+)>", draw, snippet.replace("~", "")).encode()
