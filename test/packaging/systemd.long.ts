/**
 * The unit that is shipped, under a systemd that runs as process 1 of namespaces of its own: an [[exec]] of `systemctl restart`
 * restarts the service that packaging/cinnabar.rules lists, and no other. systemd, D-Bus and polkit are Debian's.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import '../support/program.ts'
import { listing } from './polkit-rule.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const NEEDED = {
  '/lib/systemd/systemd': 'systemd',
  '/usr/lib/polkit-1/polkitd': 'polkitd',
  '/usr/bin/dbus-daemon': 'dbus',
}
const absent = Object.entries(NEEDED).filter(([file]) => !existsSync(file))
const isRoot = process.getuid?.() === 0
const missing = absent.map(([, name]) => name).join(' ')
const why = missing !== '' ? ` (not installed: apt-get install ${missing})` : isRoot ? '' : ' (needs root)'

const CONFIGURATION = `
[producer]
data_dir = "/var/lib/cinnabar"

[[exec]]
name = "exec.restart"
argv = ["systemctl", "--no-ask-password", "restart", "{service}"]

[[exec.parameter]]
name = "service"
values = ["demo.service", "dbus.service"]
`

const DEMO = `
[Service]
ExecStart=/bin/sleep infinity
`

/** Runs when the two others have been started, and ends this systemd when it has ended. */
const PROBE = `
[Unit]
Wants=dbus.socket demo.service cinnabar.service
After=dbus.socket demo.service cinnabar.service
[Service]
Type=oneshot
TimeoutStartSec=100
Environment=CINNABAR_CONFIG=/etc/cinnabar/cinnabar.toml
ExecStart=/bin/sh /srv/test/probe.sh
ExecStopPost=/bin/systemctl --no-block exit
`

const SCRIPT = `
exec > /srv/test/answers 2> /srv/test/errors
cinnabar() { /usr/local/bin/node /opt/cinnabar/current/dist/cli/main.js "$@"; }
main() { systemctl show --property=MainPID --value "$1"; }
until cinnabar get producer.stats > /dev/null 2>&1; do
  systemctl is-active --quiet cinnabar || { systemctl status cinnabar >&2; exit 1; }
  sleep 0.2
done
for service in demo dbus; do
  before=$(main $service)
  outcome=$(cinnabar exec exec.restart service=$service.service | head -n 1)
  if [ "$before" = "$(main $service)" ]; then process=same; else process=other; fi
  echo "$service: $outcome, $process process"
done
systemctl show --property=NoNewPrivileges,CapabilityBoundingSet,User cinnabar
`

/** A cgroup of its own, below which systemd puts its services, and which nothing is left of. */
const START = `
set -eu
cgroups=$1/cgroups
group=$cgroups/$(basename "$1")
mount -t cgroup2 cgroup2 "$cgroups"
mkdir "$group"
trap 'find "$group" -depth -type d -exec rmdir {} +' EXIT
sh -c 'echo 0 > "$1/cgroup.procs"; shift; exec "$@"' sh "$group" \\
  unshare --pid --fork --kill-child --net --uts --ipc --cgroup --mount sh "$2/test/packaging/boot.sh" "$1" "$2" "$3"
`

// A machine may have no systemd.
describe.skipIf(why !== '')(`the unit under systemd${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-systemd-'))
  let answers = ''

  beforeAll(() => {
    for (const name of ['root', 'layers', 'cgroups']) mkdirSync(join(directory, name))
    const files = {
      'cinnabar.toml': CONFIGURATION,
      'cinnabar.rules': listing(['demo.service']),
      'demo.service': DEMO,
      'probe.service': PROBE,
      'probe.sh': SCRIPT,
      answers: '',
      errors: '',
    }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
    const { stderr } = spawnSync(
      'unshare',
      [...namespaces, 'sh', '-c', START, 'sh', directory, ROOT, process.execPath],
      {
        encoding: 'utf8',
        timeout: 110_000,
        killSignal: 'SIGKILL',
      },
    )
    answers = readFileSync(join(directory, 'answers'), 'utf8')
    expect(answers, `${stderr}${readFileSync(join(directory, 'errors'), 'utf8')}`).not.toBe('')
  }, 120_000)

  afterAll(() => rmSync(directory, { recursive: true }))

  it('lets exec.restart restart the service that the rule lists', () => {
    expect(answers).toContain('demo: ok, other process')
  })

  it('lets it restart no other', () => {
    expect(answers).toContain('dbus: failed: exit code 4, same process')
  })

  it('runs the server without privileges meanwhile', () => {
    expect(answers).toContain('User=cinnabar')
    expect(answers).toContain('NoNewPrivileges=yes')
    expect(answers).toMatch(/^CapabilityBoundingSet=$/m)
  })
})
