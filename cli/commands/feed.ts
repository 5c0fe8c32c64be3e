/**
 * `cinnabar feed smon`: sends a file or a pipe as one smon stream to the server's listener, as fast as the server reads it.
 * smon has no responses: the server has read everything when it closes the connection after we have closed our side.
 */
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { ExitCode, errorCode, Failure } from '../failure.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const DEFAULT_TO = '127.0.0.1:2606'
/** The interval between two progress notes. */
const PROGRESS_MS = 2000

interface Target {
  readonly host: string
  readonly port: number
  readonly text: string
}

export function addFeed(program: Command, { terminal }: Cli): void {
  const feed = program.command('feed').description('send recorded or live measurements to the server')
  feed
    .command('smon')
    .description('send a file, or standard input with -, to the smon listener of a server')
    .argument('<file>', 'smon stream; - for standard input')
    .addOption(
      new Option('--to <host:port>', 'address where the server listens for smon over TCP (`tcp` in [smon])')
        .argParser(target)
        .default(target(DEFAULT_TO), DEFAULT_TO),
    )
    .action(async (file: string, { to }: { to: Target }) => {
      const bytes = await send(file === '-' ? terminal.input : await openFile(file), to, terminal)
      terminal.note(`${to.text} has read ${bytes} bytes`)
    })
}

/** Rejects with Failure. */
async function openFile(file: string): Promise<Readable> {
  try {
    const handle = await open(file)
    if ((await handle.stat()).isDirectory()) throw new Error('it is a directory')
    return handle.createReadStream()
  } catch (error) {
    throw new Failure(ExitCode.FAILED, `cannot read ${file}: ${messageOf(error)}`)
  }
}

/** Resolves with the number of bytes when the server has read them all. Rejects with Failure. */
async function send(input: Readable, to: Target, terminal: Terminal): Promise<number> {
  const socket = connect({ host: to.host, port: to.port, allowHalfOpen: true })
  const progress = setInterval(() => {
    if (terminal.isWatched) terminal.note(`${socket.bytesWritten} bytes so far …`)
  }, PROGRESS_MS)
  // Only the end of the connection is ever read.
  socket.resume()
  try {
    await once(socket, 'connect')
    await Promise.all([once(socket, 'end'), pipeline(input, socket)])
    return socket.bytesWritten
  } catch (error) {
    throw new Failure(ExitCode.FAILED, problem(error, to))
  } finally {
    clearInterval(progress)
    socket.destroy()
  }
}

function problem(error: unknown, { text }: Target): string {
  const isOfConnection = error instanceof Error && 'syscall' in error && error.syscall === 'connect'
  const isReset = errorCode(error) === 'ECONNRESET'
  if (isOfConnection && !isReset) {
    const advice = 'is the server running, and is `tcp` set in its section [smon]? Use --to for another address'
    return `cannot connect to ${text} (${messageOf(error)}): ${advice}`
  }
  const reasons = 'see `allow` and `max_sources` in [smon], and `producer.sensors`, for why it may refuse a source'
  return `${text} closed the connection before it had read everything (${messageOf(error)}): ${reasons}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function target(text: string): Target {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < 1 || port > 65_535) throw new InvalidArgumentError('Expected host:port.')
  return { host: (match[1] ?? match[2]) as string, port, text }
}
