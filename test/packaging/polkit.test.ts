/**
 * packaging/cinnabar.rules: what Debian's polkitd answers systemd for the user `cinnabar`, and that it answers others as before.
 * polkitd, its bus and its users are those of a mount namespace; nothing of this machine's is asked or changed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { listing } from './polkit-rule.ts'

const NEEDED = {
  '/usr/lib/polkit-1/polkitd': 'polkitd',
  '/usr/bin/pkcheck': 'polkitd',
  '/usr/bin/dbus-daemon': 'dbus',
  '/usr/share/polkit-1/actions/org.freedesktop.systemd1.policy': 'systemd',
}
const absent = Object.entries(NEEDED).filter(([file]) => !existsSync(file))
const packages = [...new Set(absent.map(([, name]) => name))]
const isRoot = process.getuid?.() === 0
const why =
  packages.length > 0 ? ` (not installed: apt-get install ${packages.join(' ')})` : isRoot ? '' : ' (needs root)'

/** Exit codes of pkcheck. */
const ALLOWED = 0
const REFUSED = 1
/** polkit would ask for the password of an admin, as it does where no rule decides. */
const ASKED = 2

/** Reads `USER ACTION UNIT VERB` from each line, and answers with the exit code of pkcheck. */
const SCRIPT = `
set -eu
cd "$1"
for file in passwd group; do mount --bind $file /etc/$file; done
mount -t tmpfs tmpfs /run
mkdir /run/dbus
mount -t tmpfs tmpfs /etc/polkit-1
mkdir /etc/polkit-1/rules.d
install -m 644 cinnabar.rules /etc/polkit-1/rules.d/40-cinnabar.rules
mkfifo -m 666 /run/ready
dbus-daemon --system --fork --nopidfile
while read -r user action unit verb; do
  setpriv --reuid "$user" --regid "$user" --clear-groups sh -c 'echo $$ > /run/ready; exec sleep infinity' &
  read -r pid < /run/ready
  code=0
  pkcheck --action-id "org.freedesktop.systemd1.$action" --process "$pid" --detail unit "$unit" --detail verb "$verb" > pkcheck.log 2>&1 || code=$?
  echo "$code"
done`

// A machine may have no polkit.
describe.skipIf(why !== '')(`packaging/cinnabar.rules${why}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-polkit-'))
  afterAll(() => rmSync(directory, { recursive: true }))

  /** What polkitd answers, with these units in the rule. */
  function ask(units: readonly string[], questions: readonly string[]): number[] {
    writeFileSync(join(directory, 'cinnabar.rules'), listing(units))
    const passwd = '\ncinnabar:x:64001:64001::/:/usr/sbin/nologin\nother:x:64002:64002::/:/usr/sbin/nologin\n'
    writeFileSync(
      join(directory, 'passwd'),
      readFileSync('/etc/passwd', 'utf8').replace(/^cinnabar:.*\n/gm, '') + passwd,
    )
    const group = '\ncinnabar:x:64001:\nother:x:64002:\n'
    writeFileSync(join(directory, 'group'), readFileSync('/etc/group', 'utf8').replace(/^cinnabar:.*\n/gm, '') + group)
    const { stdout, stderr, status } = spawnSync(
      'unshare',
      ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', SCRIPT, 'sh', directory],
      {
        input: questions.map((question) => `${question}\n`).join(''),
        encoding: 'utf8',
        timeout: 60_000,
        killSignal: 'SIGKILL',
      },
    )
    expect(status, stderr).toBe(0)
    return stdout.trim().split('\n').map(Number)
  }

  it('allows the user cinnabar to restart the units that it lists, and nothing else', () => {
    const answers: Record<string, number> = {
      'cinnabar manage-units demo.service restart': ALLOWED,
      'cinnabar manage-units web@2.service restart': ALLOWED,
      'cinnabar manage-units other.service restart': REFUSED,
      'cinnabar manage-units demo.service.service restart': REFUSED,
      'cinnabar manage-units demo.service stop': REFUSED,
      'cinnabar manage-units demo.service start': REFUSED,
      'cinnabar manage-units demo.service kill': REFUSED,
      'cinnabar manage-units demo.service set-property': REFUSED,
      'cinnabar manage-unit-files demo.service restart': ASKED,
      'cinnabar reload-daemon demo.service restart': ASKED,
      'other manage-units demo.service restart': ASKED,
      'other manage-units other.service stop': ASKED,
      'root manage-units other.service stop': ALLOWED,
    }
    const questions = Object.keys(answers)
    const given = ask(['demo.service', 'web@2.service'], questions)
    expect(Object.fromEntries(questions.map((question, index) => [question, given[index]]))).toEqual(answers)
  })

  it('allows nothing as it is shipped', () => {
    expect(ask([], ['cinnabar manage-units nginx.service restart'])).toEqual([REFUSED])
  })
})
