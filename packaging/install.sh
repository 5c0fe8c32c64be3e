#!/bin/sh
# Installs Cinnabar as a service under systemd, or upgrades it; docs/operating.md describes it. It can be run again at any time:
# what is done already is not done again.
#
#   packaging/install.sh                the commit that is checked out in the clone with this script
#   packaging/install.sh PACKAGE.tgz    a package that `npm pack` has made
#   packaging/install.sh --back         the version that ran before, with the database as it was then if the formats differ
#
# Every version is built in a directory of its own, and the link `current` names the one that runs. So the server is down only
# while it restarts, and an upgrade that fails before that changes nothing; one that fails later is completed when the script is
# run again. DESTDIR is put in front of all paths.
set -eu
umask 022

versions=${DESTDIR:-}/opt/cinnabar/versions
current=${DESTDIR:-}/opt/cinnabar/current
config=${DESTDIR:-}/etc/cinnabar/cinnabar.toml
unit=${DESTDIR:-}/etc/systemd/system/cinnabar.service
program=${DESTDIR:-}/usr/local/bin/cinnabar
backups=${DESTDIR:-}/var/backups
# In the directory of a version: the version that ran before it and, if the formats differ, the backup that was made then.
before=.before
# There while a version has to be started and has not answered yet.
pending=.pending

say() {
  echo "install.sh: $*"
}

fail() {
  say "$*" >&2
  exit 1
}

# The value of a key of a version's package.json.
manifest() {
  node -p 'JSON.parse(fs.readFileSync(process.argv[1], "utf8"))[process.argv[2]]' "$1/package.json" "$2"
}

# The command line of a version, for the server that the configuration describes: cinnabar VERSION COMMAND...
cinnabar() {
  version=$1
  shift
  node "$versions/$version/dist/cli/main.js" "$@" --config "$config"
}

runs() {
  systemctl is-active --quiet cinnabar
}

# In the clone, which may belong to another user than root.
in_clone() {
  git -c safe.directory="$source" -C "$source" "$@"
}

# Prints the name of the version: that of the package, and what it was built from.
build() {
  version='JSON.parse(fs.readFileSync(0)).version'
  case $source in
    *.tgz) name=$(tar xzOf "$source" package/package.json | node -p "$version")-$(sha256sum "$source" | cut -c 1-7) ;;
    *) name=$(in_clone show HEAD:package.json | node -p "$version")-$(in_clone rev-parse --short HEAD) ;;
  esac
  if [ ! -e "$versions/$name" ]; then
    say "building $name" >&2
    part=$versions/$name.part
    rm -rf "$part"
    mkdir -p "$part"
    case $source in
      *.tgz)
        tar xzf "$source" -C "$part" --strip-components=1
        # Only SQLite has to be built, and that on Node 20 only; what the package itself has is built already.
        (cd "$part" && npm ci --omit=dev --ignore-scripts &&
          { [ -d node_modules/better-sqlite3-13 ] || npm rebuild better-sqlite3 --foreground-scripts; }) >&2
        ;;
      *)
        in_clone diff --quiet HEAD || say "changes that are not committed are left out" >&2
        in_clone archive HEAD | tar xC "$part"
        (cd "$part" && npm ci && npm prune --omit=dev --ignore-scripts) >&2
        ;;
    esac
    chmod +x "$part/dist/cli/main.js"
    mv "$part" "$versions/$name"
  fi
  echo "$name"
}

# The user, the configuration and the directories, as far as they are missing.
prepare() {
  mkdir -p "$(dirname "$program")" "$(dirname "$unit")" "$backups"
  id cinnabar > /dev/null 2>&1 ||
    useradd --system --home-dir /var/lib/cinnabar --shell /usr/sbin/nologin cinnabar
  [ -e "$config" ] || install -D -m 644 "$versions/$1/packaging/cinnabar.toml" "$config"
}

# What makes a version the current one, but for the restart. The link comes last: if anything fails before it, the next run does all of
# this again.
switch() {
  ln -sfn "$current/dist/cli/main.js" "$program"
  cmp -s "$versions/$1/packaging/cinnabar.service" "$unit" || install -m 644 "$versions/$1/packaging/cinnabar.service" "$unit"
  systemctl daemon-reload
  ln -sfn "versions/$1" "$current.new"
  mv -T "$current.new" "$current"
}

# Whether the server of a version answers. A node of a cluster that follows lets nobody in, but says how it is.
answers() {
  cinnabar "$1" get producer.stats > /dev/null 2>&1 || cinnabar "$1" cluster > /dev/null 2>&1
}

# Restarts the server, and waits until it answers, for half a minute.
start() {
  systemctl restart cinnabar || fail_to_start "$1"
  end=$(($(date +%s) + 30))
  until answers "$1"; do
    [ "$(date +%s)" -lt $end ] || fail_to_start "$1"
    sleep 0.2
  done
  rm -f "$versions/$1/$pending"
  say "$1 runs"
}

fail_to_start() {
  say "$1 does not answer. Its log: journalctl -u cinnabar" >&2
  runs && say "It runs; why it does not answer: cinnabar get producer.stats --config $config" >&2
  [ -e "$versions/$1/$before" ] && say "Back to the version before: $current/packaging/install.sh --back" >&2
  fail "To start it and wait for it again, run the same command again"
}

# A copy of the database in the format that the version before can read: back_up VERSION FILE. `checked` is the configuration.
back_up() {
  data=$(printf '%s' "$checked" | node -p 'JSON.parse(fs.readFileSync(0)).producer.data_dir')
  [ -e "$data/cinnabar.db" ] || return 0
  say "the format of the database may change: backing it up to $2"
  if runs; then
    cinnabar "$1" backup "$2" --without-history || fail "there is no backup, so nothing was changed. While the server is stopped, its files are copied"
  else
    (umask 077 && cp "$data/cinnabar.db" "$2" && if [ -e "$data/cinnabar.db-wal" ]; then cp "$data/cinnabar.db-wal" "$2-wal"; fi)
  fi
}

upgrade() {
  new=$(build)
  old=$(readlink "$current" || true)
  old=${old#versions/}
  prepare "$new"
  checked=$(cinnabar "$new" config check --json)
  if [ "$old" != "$new" ]; then
    backup=
    # Without a version before, nobody knows the format of a database that is there.
    if [ -z "$old" ] || [ "$(manifest "$versions/$old" databaseFormat)" != "$(manifest "$versions/$new" databaseFormat)" ]; then
      backup=$backups/cinnabar-$(date +%Y%m%d-%H%M%S).db
      back_up "$new" "$backup"
      [ -e "$backup" ] || backup=
    fi
    # It may have been installed once before.
    rm -f "$versions/$new/$before" "$versions/$new/$pending"
    [ -z "$old$backup" ] || printf '%s\n%s\n' "$old" "$backup" > "$versions/$new/$before"
    # A version that does not start, and that this one replaces, was to run as well.
    if runs || [ -e "$versions/$old/$pending" ]; then : > "$versions/$new/$pending"; fi
  fi
  switch "$new"
  if [ -e "$versions/$new/$pending" ]; then
    start "$new"
  elif [ "$old" = "$new" ]; then
    say "$new is installed already"
  else
    say "$new is installed. Start it, now and at every boot: systemctl enable --now cinnabar"
  fi
}

go_back() {
  new=$(readlink "$current") || fail "nothing is installed in $current"
  new=${new#versions/}
  if [ ! -e "$versions/$new/$before" ]; then
    [ -e "$versions/$new/$pending" ] || fail "there is no version to go back to from $new"
    start "$new"
    return
  fi
  { read -r old; read -r backup; } < "$versions/$new/$before"
  [ -n "$old" ] || fail "there is no version to go back to from $new. The database as it was before: $backup"
  [ -e "$versions/$old" ] || fail "$versions/$old was removed"
  cinnabar "$old" config check > /dev/null || fail "$old refuses the configuration, so nothing was changed"
  if [ -n "$backup" ]; then
    say "$old cannot read the database of $new: restoring $backup"
    say "What was stored since then is lost: values, channels, users, tokens, rules and records of the audit log."
    say "Values that were committed since then come again. Consumers are informed by a GAP (restored)."
    systemctl stop cinnabar
    cinnabar "$old" restore "$backup" || { systemctl start cinnabar; fail "nothing was changed"; }
  fi
  # Going back twice must not go further back: that would restore an even older database.
  rm -f "$versions/$old/$before"
  : > "$versions/$old/$pending"
  switch "$old"
  start "$old"
}

[ -n "${DESTDIR:-}" ] || [ "$(id -u)" = 0 ] || fail "run it as root"
case ${1:-} in
  --back) source= ;;
  *.tgz) source=$(realpath "$1") ;;
  '')
    source=$(realpath "$(dirname "$0")/..")
    [ -e "$source/.git" ] || fail "$source is no clone: name a package (PACKAGE.tgz)"
    ;;
  *) fail "it takes a package (PACKAGE.tgz), --back, or nothing" ;;
esac
# As the unit does: for a version of before, a relative path of the configuration begins there.
cd "${DESTDIR:-}/var/lib/cinnabar" 2> /dev/null || cd /
if [ -z "$source" ]; then go_back; else upgrade; fi
