/** Debian's Alertmanager takes the alerts, and `amtool` shows them; what has ended is resolved there. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import type { Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const hasAlertmanager = spawnSync('which', ['prometheus-alertmanager', 'amtool']).status === 0

const RULES = `groups:
  - name: disks
    interval: 1s
    rules:
      - alert: DiskFull
        expr: vector(95) > 90
        labels: { severity: page, disk: 'a "b"' }
        annotations: { summary: '{{ $value }}% used' }
`

let peer: ChildProcess | undefined
let server: ServerProcess | undefined
const directory = mkdtempSync(join(tmpdir(), 'alertmanager-'))
afterEach(async () => {
  await server?.end('SIGKILL')
  await server?.remove()
  if (peer?.exitCode === null) {
    peer.kill('SIGKILL')
    await once(peer, 'exit')
  }
  rmSync(directory, { recursive: true, force: true })
})

// Where Debian's prometheus-alertmanager is not installed.
it.skipIf(!hasAlertmanager)('an alert comes, with labels and annotations, and is resolved when it ends', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  writeFileSync(join(directory, 'a.yml'), 'route: { receiver: nobody }\nreceivers: [{ name: nobody }]\n')
  const given = ['--config.file=a.yml', '--storage.path=data', '--cluster.listen-address=']
  const options = { cwd: directory, stdio: 'ignore' } as const
  peer = spawn('prometheus-alertmanager', [...given, `--web.listen-address=${new URL(url).host}`], options)
  await eventually(async () => expect((await fetch(`${url}/-/ready`)).status).toBe(200))
  const shown = async (): Promise<Json[]> => {
    const { stdout } = await promisify(execFile)('amtool', ['alert', `--alertmanager.url=${url}`, '-o', 'json'])
    return JSON.parse(stdout) as Json[]
  }

  const started = new ServerProcess(
    `[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n[[notify]]\nname = "am"\nurl = "alertmanager+${url}"\n`,
  )
  server = started
  const rules = join(started.directory, 'a.rules.yml')
  writeFileSync(rules, RULES)
  await started.start()
  await eventually(async () =>
    expect(await shown()).toMatchObject([
      {
        labels: { alertname: 'DiskFull', severity: 'page', disk: 'a "b"' },
        annotations: { summary: '95% used' },
        status: { state: 'active' },
      },
    ]),
  )
  writeFileSync(rules, 'groups: []\n')
  process.kill(started.pid, 'SIGHUP')
  await eventually(async () => expect(await shown()).toEqual([]))
})
