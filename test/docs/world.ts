/**
 * Where the commands of one page run: a directory of its own, which the page may call /srv/cinnabar, free ports for those
 * that are in the documents, `npx`, `npm` and `cinnabar` that mean this tree, and a server, started when the
 * first command needs it. Environment and working directory live from one command to the next, as in a terminal.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { installPackages, installPrograms, programFolder, SERVE } from './install.ts'
import { ROOT } from './page.ts'
import { idsIn, isShown, linesOf } from './shown.ts'

export const PASSWORD = 'the password of the documents'
const SHOWN_DIRECTORY = '/srv/cinnabar'
const DOCUMENTED_PORTS = [
  7650, 7651, 8649, 8650, 8651, 8652, 8888, 8889, 8890, 2606, 8125, 9125, 9090, 7655, 7660, 7661, 7662, 7663,
] as const
const DOCUMENTED_PORT = new RegExp(`\\b(${DOCUMENTED_PORTS.join('|')})\\b`, 'g')
/** Ends what hangs, before the test ends: no measure of speed. */
const DEADLINE_MS = 90_000
/** What ends by itself has this long to do so; what takes longer is ended, and no worse for it. */
const GRACE_MS = 2000
/** Between two runs of what another terminal does. */
const PAUSE_MS = 100

export interface Command {
  readonly line: string
  readonly shown: readonly string[]
  /** Ended by Ctrl-C as soon as what is shown has come. */
  readonly isInterrupted?: boolean
  /** Goes on as the page's server. */
  readonly isServer?: boolean
  /** Goes on, if it does not end by itself, for as long as the page. */
  readonly isBeside?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Another terminal: run over and over until what is shown has come. */
  readonly meanwhile?: string | undefined
}

interface Running {
  readonly child: ChildProcess
  /** Lines without empty ones at the ends. */
  readonly printed: () => string[]
  readonly end: (signal: NodeJS.Signals) => void
  /** Settles when it has ended, with its exit code. */
  readonly ended: Promise<number | null>
}

export class World {
  readonly #root = mkdtempSync(join(tmpdir(), 'cinnabar-docs-'))
  readonly #bin = join(this.#root, 'bin')
  readonly #state = join(this.#root, 'state')
  readonly directory = join(this.#root, 'cinnabar')
  readonly #ports: ReadonlyMap<string, number>
  readonly #running = new Set<Running>()
  readonly #startsItself: boolean
  /** Printed, by what is shown. */
  readonly #ids = new Map<string, string>()
  readonly #users = new Set<string>()
  #server: { readonly command: string; readonly running: Running } | undefined

  /** `startsItself`: the page shows how the server is started; none is before that. */
  private constructor(ports: ReadonlyMap<string, number>, startsItself: boolean) {
    this.#ports = ports
    this.#startsItself = startsItself
    mkdirSync(this.#bin)
    mkdirSync(this.directory)
    installPackages(this.directory)
    writeFileSync(this.#state, '')
    installPrograms(this.#bin, this.port(2606))
  }

  static async open({ startsItself = false } = {}): Promise<World> {
    const ports = new Map<string, number>()
    for (const port of DOCUMENTED_PORTS) ports.set(String(port), await freePort())
    return new World(ports, startsItself)
  }

  port(documented: (typeof DOCUMENTED_PORTS)[number]): number {
    return this.#ports.get(String(documented)) as number
  }

  /** Puts this page's ports into what the documents say, and the ids that were printed for those that are shown. */
  adapt(text: string): string {
    const inPlace = text.replace(DOCUMENTED_PORT, (port) => String(this.#ports.get(port)))
    return inPlace.replace(/\b\d{7,}\b/g, (id) => this.#ids.get(id) ?? id)
  }

  write(file: string, lines: readonly string[]): void {
    writeFileSync(join(this.directory, file), this.adapt(`${lines.join('\n')}\n`))
  }

  /**
   * Runs it and compares. What has not ended by itself some time after it has printed what is shown is ended by Ctrl-C,
   * and may have printed more; what prints nothing, or anything (`…`), has to end. Throws with what was shown and what was
   * printed.
   */
  async run(command: Command): Promise<void> {
    const { line, shown, isInterrupted = false, isServer = false, isBeside = false, env, meanwhile } = command
    if (isServer) await this.stop('SIGTERM')
    else await this.start()
    if (isBeside) {
      // What comes after it in the script, that the environment lasts, is for the others.
      this.#spawn(`(${this.adapt(line)}); exit`)
      return
    }
    const wanted = linesOf(shown.join('\n'))
    const running = this.#spawn(this.adapt(line), env)
    const wrong = (how: string) => {
      running.end('SIGKILL')
      return mismatch(line, wanted, running.printed(), how)
    }
    let isEnded = false
    if (wanted.length > 0) {
      const come = this.#until(running, () => beginsWith(wanted, running.printed()))
      const either = within(DEADLINE_MS, Promise.race([come, running.ended]))
      if (meanwhile !== undefined) await this.#repeat(meanwhile, either)
      const first = await either
      if (first === 'late') throw wrong('and nothing more')
      if (first === 'so' && isServer) {
        this.#server = { command: line, running }
        return
      }
      const mayGoOn = first === 'so' && !isOpen(wanted)
      isEnded = (first === 'so' && isInterrupted) || (mayGoOn && (await within(GRACE_MS, running.ended)) === 'late')
      if (isEnded) running.end('SIGINT')
    }
    const code = await within(DEADLINE_MS, running.ended)
    if (code === 'late') throw wrong('and it does not end')
    if (code !== 0 && wanted.length === 0) throw wrong(`exit code ${code}`)
    if (!(isEnded ? beginsWith : isShown)(wanted, running.printed())) throw wrong(`exit code ${code}`)
    for (const [id, real] of idsIn(wanted, running.printed())) this.#ids.set(id, real)
  }

  async start(): Promise<void> {
    if (this.#server !== undefined || this.#startsItself) return
    const command = SERVE
    const running = this.#spawn(command, { CINNABAR_ADMIN_PASSWORD: PASSWORD })
    await this.#untilUp(command, running)
  }

  /** Lets them log in with PASSWORD. */
  async addUsers(names: Iterable<string>): Promise<void> {
    this.write('password', [PASSWORD])
    for (const name of names) {
      if (this.#users.has(name)) continue
      this.#users.add(name)
      const words = `'${name}' --password-file password`
      await this.run({
        line: `cinnabar user add ${words} > /dev/null 2>&1 || cinnabar user passwd ${words} > /dev/null`,
        shown: [],
      })
    }
  }

  async restart(signal: NodeJS.Signals): Promise<void> {
    const command = this.#server?.command ?? SERVE
    await this.stop(signal)
    await this.#untilUp(command, this.#spawn(this.adapt(command)))
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server
    this.#server = undefined
    server?.running.end(signal)
    await server?.running.ended
  }

  async close(): Promise<void> {
    for (const running of this.#running) running.end('SIGKILL')
    await Promise.all([...this.#running].map(({ ended }) => ended))
    rmSync(this.#root, { recursive: true, force: true })
  }

  async #untilUp(command: string, running: Running): Promise<void> {
    const up = this.#until(running, () => running.printed().some((line) => line.startsWith('cinnabar listens')))
    const first = await within(DEADLINE_MS, Promise.race([up, running.ended]))
    if (first !== 'so') throw mismatch(command, ['cinnabar listens: …'], running.printed(), `exit code ${first}`)
    this.#server = { command, running }
  }

  async #repeat(line: string, until: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = until.then(() => {
      isOver = true
    })
    while (!isOver) {
      await this.#spawn(this.adapt(line)).ended
      await within(PAUSE_MS, over)
    }
  }

  #spawn(line: string, env: Readonly<Record<string, string>> = {}): Running {
    const script = `exec 2>&1\n. '${this.#state}'\ncd "$PWD"\n${line}\nstatus=$?\nexport -p > '${this.#state}'\nexit $status`
    const child = spawn('/bin/bash', ['-c', script], {
      cwd: this.directory,
      env: { ...this.#environment(), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    const running: Running = {
      child,
      printed: () => linesOf(text.replaceAll(this.directory, SHOWN_DIRECTORY)),
      end: (signal) => endGroup(child, signal),
      ended: once(child, 'close').then(([code]) => {
        this.#running.delete(running)
        return code as number | null
      }),
    }
    this.#running.add(running)
    return running
  }

  #environment(): NodeJS.ProcessEnv {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(CINNABAR_|VITEST|NODE_|npm_|FORCE_COLOR)/.test(name),
    )
    return {
      ...Object.fromEntries(inherited),
      PATH: `${this.#bin}:${process.env['PATH']}:${programFolder(this.#bin)}`,
      HOME: this.directory,
      NO_COLOR: '1',
      PYTHONPATH: join(ROOT, 'packages/python/src'),
      PYTHONDONTWRITEBYTECODE: '1',
      CINNABAR_LISTEN_TCP: `127.0.0.1:${this.port(7650)}`,
      CINNABAR_LISTEN_HTTP: `127.0.0.1:${this.port(7651)}`,
      CINNABAR_GMETRIC_LISTEN: `127.0.0.1:${this.port(8649)}`,
      CINNABAR_AUTH_SCRAM_ITERATIONS: '4096',
    }
  }

  /** Settles when the condition holds, which can only change with what is printed. */
  #until({ child }: Running, condition: () => boolean): Promise<'so'> {
    return new Promise((resolve) => {
      const look = () => {
        if (condition()) resolve('so')
      }
      child.stdout?.on('data', look)
      look()
    })
  }
}

/** What goes on prints more than is shown. */
function beginsWith(wanted: readonly string[], printed: readonly string[]): boolean {
  return isShown(wanted, isOpen(wanted) ? printed : printed.slice(0, wanted.length))
}

/** Whether any lines may come. */
function isOpen(wanted: readonly string[]): boolean {
  return wanted.some((line) => line.trim() === '…')
}

function mismatch(line: string, wanted: readonly string[], printed: readonly string[], how: string): Error {
  return new Error(`$ ${line}\n--- shown\n${wanted.join('\n')}\n--- printed, ${how}\n${printed.join('\n')}`)
}

function endGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, signal)
  } catch {}
}

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
