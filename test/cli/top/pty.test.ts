/** The real command against a real server, in a real terminal: `script` of util-linux makes one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PROGRAM } from '../../support/program.ts'
import { ServerProcess } from '../../support/server-process.ts'

const ENTERED = '\x1b[?1049h'
const LEFT = '\x1b[?25h\x1b[?1049l'

const hasScript = spawnSync('script', ['--version']).status === 0
if (!hasScript) console.warn('top in a terminal is not tested: there is no `script`. apt-get install bsdutils')

const server = new ServerProcess()
const started: ChildProcess[] = []

beforeAll(async () => {
  if (hasScript) await server.start()
})
afterAll(async () => {
  for (const child of started) child.kill('SIGKILL')
  await server.remove()
})

class Terminal {
  shown = ''
  readonly exited: Promise<unknown>
  readonly #child: ChildProcess
  #wake = () => {}

  /** The shell tells the settings of the terminal before and afterwards, the process and its exit code. */
  constructor() {
    const url = `--url tcp://127.0.0.1:${server.tcpPort}`
    const top = `exec ${process.execPath} ${PROGRAM} top ${url} --config ${server.config}`
    const settings = 'echo settings=`stty -g`'
    const command = `stty rows 24 cols 100; ${settings}; sh -c 'echo pid=$$; ${top}'; echo exit=$?; ${settings}`
    this.#child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
    started.push(this.#child)
    this.exited = once(this.#child, 'exit')
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.shown += chunk.toString()
      this.#wake()
    })
  }

  get pid(): number {
    return Number(/pid=(\d+)/.exec(this.shown)?.[1])
  }

  /** Checks that `top` has ended well and the terminal is as it was. */
  async restored(): Promise<void> {
    await this.exited
    const [before, after] = [...this.shown.matchAll(/settings=(\S+)/g)].map(([, settings]) => settings)
    expect(after).toBe(before)
    expect(this.shown.slice(this.shown.lastIndexOf(LEFT))).toMatch(/exit=0\r\n/)
    expect(this.shown.lastIndexOf(LEFT)).toBeGreaterThan(this.shown.lastIndexOf(ENTERED))
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys)
  }

  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.shown)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

// Skipped only where there is no terminal to be had; the message above says what to install.
test.skipIf(!hasScript)('draws on the alternate screen, obeys keys, and gives the terminal back', async () => {
  const terminal = new Terminal()
  await terminal.until(/METRIC \^.*Nothing has come in yet/s)
  await terminal.until(/n1.* load \d/)
  expect(terminal.shown).toContain(ENTERED)
  terminal.type('/zz')
  await terminal.until(/\/zz_/)
  terminal.type('\x1b[A\x1b')
  await terminal.until(/\/zz_.*q quit/s)
  terminal.type('q')
  await terminal.restored()
})

// Skipped only where there is no terminal to be had; the message above says what to install.
test.skipIf(!hasScript)('SIGTERM gives the terminal back too', async () => {
  const terminal = new Terminal()
  await terminal.until(/METRIC \^/)
  process.kill(terminal.pid, 'SIGTERM')
  await terminal.restored()
})
