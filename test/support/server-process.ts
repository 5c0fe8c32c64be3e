/** The server as a process of its own, with a configuration in a directory that outlives it. */
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ScramClient } from '../../auth/scram/client.ts'
import { join as bytes, command, str } from './bytes.ts'
import { firstLeak } from './canaries.ts'
import { Child } from './child.ts'
import { READY, SERVER_PROGRAM } from './program.ts'
import { RawPeer } from './raw-peer.ts'
import { Seat } from './seat.ts'

/** Numbers that no command of a test has. */
const AUTH_SEQ = 0xfff00000
/** The status of an AUTH that is followed by another one. */
const CONTINUE = 1

/** Of the user `admin`. */
export const PASSWORD = 'a password for tests'

/** What is looked at of a file at once, and how much of it twice. */
const [PIECE_BYTES, OVERLAP_BYTES] = [4 << 20, 4 << 10]

export class ServerProcess {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  readonly #config = join(this.directory, 'cinnabar.toml')
  #child: Child | undefined
  /** What was written to standard error in the lives before. */
  #errorsBefore = ''
  /** What it printed when it was up. */
  greeting = ''
  tcpPort = 0
  httpPort = 0
  /** 0 if it does not listen for TLS. */
  tlsPort = 0

  readonly #preload: string
  #hasShownPassword = false

  /**
   * `toml`: further sections, of which [tls] makes it listen for TLS. `tcp`, `http`: ports that stay the same over restarts.
   * `name`: what it calls itself. `preload`: a module that each of its threads runs first.
   */
  constructor(toml = '', { name = 'n1', host = '127.0.0.1', tcp = 0, http = 0, preload = '' } = {}) {
    this.#preload = preload
    const tls = /^\[tls\]$/m.test(toml)
      ? `tls = "${host}:0"
`
      : ''
    writeFileSync(
      this.#config,
      `[producer]\nname = "${name}"\ndata_dir = ${JSON.stringify(join(this.directory, 'data'))}\n` +
        `[listen]\ntcp = "${host}:${tcp}"\nhttp = "${host}:${http}"\n${tls}` +
        `[auth]\nscram_iterations = 4096\n${toml}`,
    )
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Its log, over all starts. */
  get errors(): string {
    return this.#errorsBefore + (this.#child?.errors ?? '')
  }

  get config(): string {
    return this.#config
  }

  /** Starts it and waits until it listens. */
  async start(): Promise<void> {
    this.#errorsBefore = this.errors
    const child = new Child(process.execPath, [SERVER_PROGRAM, 'serve', '--config', this.#config], {
      env: {
        CINNABAR_ADMIN_PASSWORD: PASSWORD,
        ...(this.#preload !== '' && {
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(this.#preload)}`,
        }),
      },
    })
    this.#child = child
    await child.hasPrinted(READY)
    const { out } = child
    const [tcp, http, tls] = ['tcp', 'ws', 'tls'].map(
      (scheme) => new RegExp(` ${scheme}://[^ ]+?:(\\d+)[/ \n]`).exec(out)?.[1],
    )
    if (tcp === undefined || http === undefined) throw new Error(`the server did not start: ${out}${child.errors}`)
    this.greeting = out
    this.tcpPort = Number(tcp)
    this.httpPort = Number(http)
    this.tlsPort = Number(tls ?? 0)
  }

  /** Ends it and waits until it is gone. Gives the exit code. Without a signal it ends by itself. */
  async end(signal?: 'SIGKILL' | 'SIGTERM' | 'SIGUSR2'): Promise<number | null> {
    return (await this.#child?.end(signal)) ?? null
  }

  /** Sends it a signal that does not end it. */
  signal(name: 'SIGHUP'): void {
    this.#child?.signal(name)
  }

  /**
   * An authenticated raw connection, as `admin` or another user with the same password. The first shows the password, which nobody
   * may write down; the others prove it by SCRAM, since bcrypt takes 0.1 s of the server, and some tests look again and again.
   */
  login(user = 'admin'): Promise<{ peer: RawPeer; channel: number }> {
    const logIn = this.#hasShownPassword ? provenIn : loggedIn
    this.#hasShownPassword = true
    return logIn(this.tcpPort, user)
  }

  /** The same, as a consumer that numbers its commands. */
  async seat(user?: string): Promise<Seat> {
    const { peer, channel } = await this.login(user)
    return new Seat(peer, channel)
  }

  /** Throws if a secret was written down. */
  async remove(): Promise<void> {
    await this.end('SIGKILL')
    const data = join(this.directory, 'data')
    const names = existsSync(data) ? readdirSync(data, { withFileTypes: true }).filter((entry) => entry.isFile()) : []
    const written = names.map(({ name }) => firstLeak(piecesOf(join(data, name)), [PASSWORD]))
    rmSync(this.directory, { recursive: true, force: true })
    const leak = [firstLeak(this.errors.split('\n'), [PASSWORD]), ...written]
      .find((one) => one !== undefined)
      ?.slice(0, 500)
    if (leak !== undefined) throw new Error(`a secret was written down: ${leak}`)
  }
}

/** The bytes of a file, in texts of which each begins before the end of the one before: none may be as long as a database. */
function* piecesOf(path: string): Generator<string> {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.allocUnsafe(PIECE_BYTES)
    for (let at = 0; ; at += PIECE_BYTES - OVERLAP_BYTES) {
      const length = readSync(file, bytes, 0, PIECE_BYTES, at)
      yield bytes.toString('latin1', 0, length)
      if (length < PIECE_BYTES) return
    }
  } finally {
    closeSync(file)
  }
}

/** A connection to a server of this machine with the password of tests. */
export async function loggedIn(port: number, user = 'admin'): Promise<{ peer: RawPeer; channel: number }> {
  const peer = await connected(port)
  return { peer, channel: await authenticated(peer, 'password', bytes(str(user), str(PASSWORD))) }
}

/** The same by SCRAM. */
async function provenIn(port: number, user: string): Promise<{ peer: RawPeer; channel: number }> {
  const peer = await connected(port)
  const scram = new ScramClient({ identity: user, password: PASSWORD })
  await authenticated(peer, 'scram-sha-256', scram.first(), CONTINUE)
  await authenticated(peer, '', await scram.final((await peer.until('auth')).data), CONTINUE)
  scram.verify((await peer.until('auth')).data)
  return { peer, channel: await authenticated(peer, '', new Uint8Array(0)) }
}

async function connected(port: number): Promise<RawPeer> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  const peer = new RawPeer(socket)
  await peer.until('caps')
  return peer
}

/** Sends an AUTH, which is answered by this status. Gives the result. */
async function authenticated(peer: RawPeer, method: string, data: Uint8Array, wanted = 0): Promise<number> {
  peer.send(command.auth(AUTH_SEQ, method, data))
  const { status, result, detail } = await peer.response(AUTH_SEQ)
  if (status !== wanted) throw new Error(`AUTH was answered with status ${status}: ${detail}`)
  return result
}
