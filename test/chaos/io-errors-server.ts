/** The real server, whose next fsync fails while it serves: no more OK, an error for people, exit code 1, nothing lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { join as bytes, command, str } from '../support/bytes.ts'
import { PROGRAM, READY } from '../support/program.ts'
import { RawPeer } from '../support/raw-peer.ts'

const PASSWORD = 'a password for tests'

/** Gives how many servers were made to end: one for each way an fsync fails, or the first `count` of them. */
export async function serverWithFailingSync(count = 3): Promise<number> {
  const faults = [
    'fsync,fdatasync:error=EIO:when=1',
    'fsync,fdatasync:error=EIO',
    'fsync,fdatasync:error=ENOSPC',
  ].slice(0, count)
  for (const fault of faults) await endOf(fault)
  return faults.length
}

async function endOf(fault: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'io-errors-'))
  let server = new Serving(directory)
  try {
    const peer = await server.login()
    peer.send(command.defChannel(1))
    const { status, result: channel } = await peer.response(1)
    if (status !== 0) throw new Error(`DEF_CHANNEL was answered with ${status}`)
    const tracer = await attach(server.pid, fault)
    // Its answer waits for an fsync, which fails.
    peer.send(command.defChannel(2))
    await until(peer, 'closed')
    const code = await server.exitCode()
    tracer.kill('SIGKILL')
    const answer = peer.log.find((message) => message.kind === 'response' && message.seq === 2)
    if (answer !== undefined) throw new Error(`${fault}: a command was answered after an fsync had failed`)
    if (code !== 1) throw new Error(`${fault}: the server ended with ${code}: ${server.said}`)
    if (!/storing failed.*start again/.test(server.said)) throw new Error(`${fault}: no clear error: ${server.said}`)

    server = new Serving(directory)
    const again = await server.login()
    again.send(command.setChannel(3, channel))
    const { status: found } = await again.response(3)
    if (found !== 0) throw new Error(`${fault}: a channel that was answered is gone (status ${found})`)
    again.destroy()
  } finally {
    server.kill()
    await server.exitCode()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function until(peer: RawPeer, kind: 'closed'): Promise<void> {
  while ((await peer.next()).kind !== kind);
}

/** strace on all threads of a running process. */
async function attach(pid: number, fault: string): Promise<ChildProcess> {
  const args = ['-f', '-p', String(pid), '-e', 'trace=fsync,fdatasync', '-e', `inject=${fault}`]
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  for await (const chunk of tracer.stderr as NodeJS.ReadableStream) if (String(chunk).includes('attached')) break
  return tracer
}

class Serving {
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown[]>
  /** All that it printed. */
  said = ''

  constructor(directory: string) {
    const config = join(directory, 'cinnabar.toml')
    const toml = `[producer]\nname = "n1"\ndata_dir = ${JSON.stringify(join(directory, 'data'))}\n[listen]\ntcp = "127.0.0.1:0"\nhttp = ""\n[gmetric]\nlisten = ""\n[auth]\nscram_iterations = 4096\n`
    writeFileSync(config, toml)
    this.#child = spawn(process.execPath, [PROGRAM, 'serve', '--config', config], {
      env: { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#exit = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.said += chunk.toString()
      })
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** An authenticated connection, as soon as it listens. */
  async login(): Promise<RawPeer> {
    while (!this.said.includes(READY)) {
      if (this.#child.exitCode !== null) throw new Error(`the server did not start: ${this.said}`)
      await Promise.race([once(this.#child.stdout as NodeJS.ReadableStream, 'data'), this.#exit])
    }
    const port = Number(/tcp:\/\/127\.0\.0\.1:(\d+)/.exec(this.said)?.[1])
    const socket = connect({ host: '127.0.0.1', port })
    await once(socket, 'connect')
    const peer = new RawPeer(socket)
    await peer.until('caps')
    peer.send(command.auth(1000, 'password', bytes(str('admin'), str(PASSWORD))))
    await peer.response(1000)
    return peer
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async exitCode(): Promise<number | null> {
    await this.#exit
    return this.#child.exitCode
  }
}
