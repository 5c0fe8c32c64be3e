/**
 * `cinnabar feed smon`: a file or a pipe as one smon stream to the server's listener, at the pace at which it is taken.
 * smon has no answers: that the server took everything is known by its end of the connection, which comes behind ours.
 */
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { ExitCode, Failure } from '../failure.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'

const DEFAULT_TO = '127.0.0.1:2606'
/** Between two words about a feed that takes long. */
const TELL_MS = 2000

interface Target {
  readonly host: string
  readonly port: number
  readonly text: string
}

export function addFeed(program: Command, { terminal }: Cli): void {
  const feed = program.command('feed').description('hand recorded or live measurements to the server')
  feed
    .command('smon')
    .description('send a file, or with - the standard input, to the smon listener of a server')
    .argument('<file>', 'an smon stream; - is the standard input')
    .addOption(
      new Option('--to <host:port>', 'where the server listens for smon over TCP (`tcp` in [smon])')
        .argParser(target)
        .default(target(DEFAULT_TO), DEFAULT_TO),
    )
    .action(async (file: string, { to }: { to: Target }) => {
      const bytes = await send(file === '-' ? terminal.input : await openFile(file), to, terminal)
      terminal.note(`${bytes} bytes taken by ${to.text}`)
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

/** Gives the number of bytes once the server has taken them all. Rejects with Failure. */
async function send(input: Readable, to: Target, terminal: Terminal): Promise<number> {
  const socket = connect({ host: to.host, port: to.port, allowHalfOpen: true })
  const telling = setInterval(() => {
    if (terminal.isWatched) terminal.note(`${socket.bytesWritten} bytes so far …`)
  }, TELL_MS)
  // Nothing is ever read, but the end.
  socket.resume()
  try {
    await once(socket, 'connect')
    await Promise.all([once(socket, 'end'), pipeline(input, socket)])
    return socket.bytesWritten
  } catch (error) {
    throw new Failure(ExitCode.FAILED, problem(error, to))
  } finally {
    clearInterval(telling)
    socket.destroy()
  }
}

function problem(error: unknown, { text }: Target): string {
  const isOfConnection = error instanceof Error && 'syscall' in error && error.syscall === 'connect'
  const isReset = error instanceof Error && 'code' in error && error.code === 'ECONNRESET'
  if (isOfConnection && !isReset) {
    const advice = 'is the server running, and `tcp` set in its section [smon]? Another address is given with --to'
    return `nothing takes smon at ${text} (${messageOf(error)}): ${advice}`
  }
  const reasons = '`allow` and `max_sources` in [smon], and `producer.sensors`, say why it may refuse a source'
  return `${text} ended the connection before it had taken everything (${messageOf(error)}): ${reasons}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function target(text: string): Target {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port < 1 || port > 65_535) throw new InvalidArgumentError('It has to be host:port.')
  return { host: (match[1] ?? match[2]) as string, port, text }
}
