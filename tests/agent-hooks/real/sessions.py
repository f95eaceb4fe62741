"""Sessions of the real programs: `sessions.py MEMHOST NODE_MODULES`. Each asks a few things, and what memory has
afterwards is compared with what was said."""
import fcntl, json, os, pathlib, pty, re, select, shutil, signal, socket, struct, subprocess, sys, tempfile, termios, time
import urllib.error, urllib.request
import models

MEMHOST, MODULES = sys.argv[1], pathlib.Path(sys.argv[2])
OPERATOR, failed = "operator-token-of-these-sessions", []
CLAUDE = next(MODULES.glob("@anthropic-ai/claude-code-linux-*/claude"))
CODEX = next(MODULES.glob("@openai/codex-linux-*/vendor/*/bin/codex"))


def check(what, found, wanted):
    print(("ok    " if found == wanted else "WRONG ") + what + ("" if found == wanted else f"\n  {found!r}\n  {wanted!r}"))
    if found != wanted:
        failed.append(what)


class Host:
    def __init__(self, place):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        serve = [MEMHOST, "serve", "--listen", self.url.removeprefix("http://"), "--data-dir", place / "data", "--token", OPERATOR]
        self.process = subprocess.Popen(serve, env={**os.environ, "HOME": str(place)}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=2)
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        raise SystemExit("the host does not become ready")

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=body and json.dumps(body).encode(), headers={
            "authorization": f"Bearer {OPERATOR}", "content-type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=60))

    def kept(self):
        body = {"scope": {"companyId": "acme"}, "limit": 1000}
        items = self.ask("POST", "/runtime/v1/companies/acme/list", body)["items"]
        return [item["text"].strip() for item in items]

    def events(self, kind):
        items = self.ask("GET", "/control/v1/companies/acme/events?limit=1000")["items"]
        return [event["type"] for event in reversed(items) if event["agentKind"] == kind]

    def until(self, is_so):
        for _ in range(600):
            if is_so():
                return
            time.sleep(0.1)


def pair(asked, answered=None):
    return f"User: {asked}\n\nAssistant: Answer to: {(answered or asked)[-60:]}"


def session(host, place, tool, environment, turns):
    """Installs the hooks, takes the turns, and returns what is new in memory and among the events."""
    home, project, environment = install(host, place, tool, tool, environment)
    before = host.kept()
    for arguments in turns:
        ran = subprocess.run(arguments, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=180)
        if ran.returncode:
            print(ran.stdout.decode()[-2000:], ran.stderr.decode()[-2000:])
        check(f"{tool}: {arguments[-1] if tool == 'codex' else arguments[2]} ends well", ran.returncode, 0)
    host.until(lambda: len(host.kept()) >= len(before) + len(turns))
    return ended(host, home, tool, before)


def install(host, place, tool, agent, environment):
    """A home with the hooks of an agent, a project, and the environment of the program."""
    home, project = place / f"home-{agent}", place / "widgets"
    home.mkdir()
    (project / ".claude/commands").mkdir(parents=True, exist_ok=True)
    (project / ".claude/commands/rev.md").write_text("Review the file $ARGUMENTS with care")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **environment(home)}
    token = host.ask("POST", "/control/v1/companies/acme/tokens", {"name": agent, "role": "agent", "agentId": agent})["value"]
    subprocess.run([MEMHOST, "agent-hooks", tool, "install", "--company", "acme", "--save-token"], check=True,
                   env={**environment, "MEMHOST_TOKEN": token, "MEMHOST_URL": host.url}, stdout=subprocess.DEVNULL)
    return home, project, environment


def ended(host, home, who, before):
    """What is new in memory, once nothing more can come."""
    time.sleep(1)
    log = home / ".local/state/memhost/agent-hooks/agent-hooks.log"
    check(f"{who}: nothing is in the log", log.read_text() if log.exists() else "", "")
    return sorted(text for text in host.kept() if text not in before)


class Terminal:
    """A program at a terminal, and a person who types."""
    def __init__(self, program, directory, environment):
        self.seen = b""
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(directory)
            os.execve(program[0], program, {**environment, "TERM": "xterm-256color"})
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))

    def look(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.file], [], [], left)[0]:
                try:
                    self.seen += os.read(self.file, 65536)
                except OSError:
                    return

    def until(self, what, is_so):
        for _ in range(900):
            if is_so():
                return
            self.look(0.1)
        check(f"{what} in time", self.text()[-300:], what)

    def text(self):
        """What was shown so far, without spaces: programs move the cursor instead."""
        return re.sub(r"\s|\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07", "", self.seen.decode(errors="replace"))

    def shows(self, what):
        self.until(what, lambda: what.replace(" ", "") in self.text())

    def types(self, words, key="\r"):
        os.write(self.file, words.encode())
        self.look(0.5)
        os.write(self.file, key.encode())

    def close(self):
        self.look(3)
        try:
            os.kill(self.process, signal.SIGKILL)
        except OSError:
            pass
        os.waitpid(self.process, 0)
        os.close(self.file)


def at_a_terminal(host, place, url):
    """Prompts that only a person at a terminal of Claude Code can make, and what memory has of them."""
    home, project, environment = install(host, place, "claude", "person", claude_environment(url))
    settings = json.loads((home / ".claude.json").read_text())
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    (home / ".claude.json").write_text(json.dumps({
        **settings, "theme": "dark", "customApiKeyResponses": {"approved": [environment["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
        "projects": {str(project): trusted}}))
    hooks = home / ".claude/settings.json"
    hooks.write_text(json.dumps({**json.loads(hooks.read_text()), "skipDangerousModePermissionPrompt": True}))
    before = host.kept()
    terminal = Terminal([str(CLAUDE), "--dangerously-skip-permissions"], project, environment)
    wanted = []

    def asks(words, text):
        wanted.append(text)
        terminal.types(words)
        terminal.until(text, lambda: sum(kept == text for kept in host.kept()) >= wanted.count(text))

    try:
        terminal.shows("bypass permissions")
        terminal.look(1)
        asks("Approve the plan", pair("Approve the plan"))
        asks("<channel> tags: how are they escaped?", pair("<channel> tags: how are they escaped?"))
        # The same words again are another decision.
        asks("Approve the plan", pair("Approve the plan"))
        terminal.types("Rename them slowly")
        # It shows whole paragraphs only.
        models.BEGAN.wait(60)
        terminal.look(2)
        os.write(terminal.file, b"\x1b")
        # With more at once this key would be a part of another one.
        terminal.shows("What should Claude do instead")
        wanted.append(f"User: Rename them slowly\n\nAssistant: {models.BEGINNING}")
        asks("Stop, rename bar", pair("Stop, rename bar"))
        asks("We chose Postgres, in vain", "User: We chose Postgres, in vain")
        asks("Then go on", pair("Then go on"))
        wanted.append("Assistant: Answer to: <bash-stdout>hi</bash-stdout><bash-stderr></bash-stderr>")
        terminal.types("!echo hi")
        terminal.until("the output", lambda: any("bash-stdout" in kept for kept in host.kept()))
        terminal.types("/exit")
    finally:
        terminal.close()
    check("a person at claude: what was said is kept, once", ended(host, home, "a person at claude", before), sorted(wanted))


def claude_environment(url):
    def make(home):
        (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
        return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    return make


def codex_environment(url):
    def make(home):
        (home / ".codex").mkdir()
        server = json.dumps(str(pathlib.Path(__file__).parent / "failing_tool.py"))
        (home / ".codex/config.toml").write_text(f"""
model = "none"
model_provider = "stand-in"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
[mcp_servers.broken]
command = "python3"
args = [{server}]
""")
        return {"STAND_IN_KEY": "none"}
    return make


def main():
    place, url = pathlib.Path(tempfile.mkdtemp(prefix="memhost-sessions-")), models.start()
    host = Host(place)
    try:
        claude = [str(CLAUDE), "-p"]
        more = ["--dangerously-skip-permissions"]
        asked = ["Which port?", "/rev main.rs", "Now make calls 10", "Run what fails"]
        turns = [[*claude, words, *more, *(["--continue"] if at else [])] for at, words in enumerate(asked)]
        kept = session(host, place, "claude", claude_environment(url), turns)
        wanted = [pair(words) for words in asked]
        wanted[1] = pair("/rev main.rs", "Review the file main.rs with care")
        check("claude: each answer is kept with its question", kept, sorted(wanted))
        events = host.events("claude-code")
        check("claude: calls", [events.count(f"tool_call.{end}") for end in ("started", "succeeded", "failed", "ended")], [11, 10, 1, 0])

        at_a_terminal(host, place, url)

        codex = [str(CODEX), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
        asked = ["Which host?", "Then make calls 10", "Run again what fails", "Try the broken tool"]
        turns = [[*codex, *(["resume", "--last"] if at else []), words] for at, words in enumerate(asked)]
        kept = session(host, place, "codex", codex_environment(url), turns)
        check("codex: each answer is kept with its question", kept, sorted(pair(words) for words in asked))
        events = host.events("codex")
        check("codex: calls", [events.count(f"tool_call.{end}") for end in ("started", "succeeded", "failed", "ended")], [12, 10, 2, 0])
        check("codex: ends of sessions", events.count("session.stopped"), len(asked))
    finally:
        host.process.terminate()
        host.process.wait(30)
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
