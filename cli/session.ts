/** Connects for the length of one command, and says what to do where that fails. */
import type { Command } from 'commander'
import { type ChannelOptions, type Connect, ConnectionError, type Consumer, StatusError } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { type Login, type LoginOptions, resolveLogin } from './login.ts'
import { printable } from './output/text.ts'
import { whileWaiting } from './progress.ts'
import type { Terminal } from './terminal.ts'

/** What commands work with; tests hand in their own. */
export interface Cli {
  readonly terminal: Terminal
  readonly connect: Connect
}

export function withLoginOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the producer (CINNABAR_URL; else where the configuration listens)')
    .option('--user <name>', 'user or tenant/user (CINNABAR_USER; else local)')
    .option('--secret-file <file>', "whose first line is the password (CINNABAR_PASSWORD; else the server's own)")
    .option('--config <file>', "the server's configuration (CINNABAR_CONFIG)")
}

/** `channel`: what the consumer's channel is to be. Without it there is no second connection where the first is lost. */
export async function withConsumer(
  { terminal, connect }: Cli,
  options: LoginOptions,
  work: (consumer: Consumer) => Promise<void>,
  channel?: ChannelOptions,
): Promise<void> {
  const login = await resolveLogin(options, terminal)
  const connecting = connect(login.url, login.credentials, channel ?? { reconnect: false })
  const consumer = await whileWaiting(terminal, `connecting to ${login.url}`, connecting).catch((error: unknown) => {
    throw explained(error, login)
  })
  consumer.on('notice', ({ detail, code }) => terminal.note(`notice: ${printable(detail) || `code ${code}`}`))
  consumer.on('disconnected', ({ message }) => terminal.note(`${printable(message)}; trying again`))
  consumer.on('connected', () => terminal.note(`connected to ${login.url} again`))
  try {
    await work(consumer)
  } catch (error) {
    throw refused(error, login)
  } finally {
    await consumer.close()
  }
}

function explained(error: unknown, { url, urlFrom, used }: Login): unknown {
  if (!(error instanceof ConnectionError)) return error
  // The URL itself may hold a password here.
  if (error.code === 'BAD_URL') {
    return new Failure(ExitCode.USAGE, `${error.message}\nThe URL came from ${urlFrom}`, { cause: error })
  }
  return new Failure(ExitCode.FAILED, `${advice(error, url)}\nTried: ${used}`, { cause: error })
}

/** What the producer refused, or how the connection ended, with what to do and who asked. */
function refused(error: unknown, { used }: Login): unknown {
  if (!(error instanceof StatusError || error instanceof ConnectionError)) return error
  const todo = error instanceof StatusError ? ADVICE[error.status] : undefined
  const message = [error.message, ...(todo ? [todo] : []), `Asked: ${used}`].join('\n')
  return new Failure(ExitCode.FAILED, message, { cause: error })
}

const ADVICE: Readonly<Record<string, string>> = {
  NO_SUCH_METRIC: '`cinnabar metrics` lists those that this user can read',
  NO_SUCH_CONTROL:
    '`cinnabar get producer.controls` lists those that this user is shown; another may be shown more: see --user',
  NO_SUCH_CHANNEL: '`cinnabar channels` lists those that this user has',
  PERMISSION_DENIED: 'another user may be allowed to: see --user',
  BUSY: 'try again in a moment',
  STORAGE_FULL: "make room on the disk of the server's data directory; it goes on by itself then",
}

function advice(error: ConnectionError, url: string): string {
  switch (error.code) {
    case 'UNREACHABLE':
      return systemCode(error.cause) === 'ECONNREFUSED'
        ? `nothing listens on ${new URL(url).host}: start the server with \`npm start\`, or name another with --url`
        : `${error.message.trim()}\n${otherDoors(url)}`
    case 'TIMEOUT':
    case 'PROTOCOL':
      return `${error.message}\n${otherDoors(url)}`
    case 'LOGIN_FAILED':
      return `${error.message}\nThere is no such user, or the secret is another one's: see --user and --secret-file`
    case 'SERVER_NOT_PROVEN':
      return `${error.message}\nIt is not the server that this secret belongs to; it was not shown the secret`
    default:
      return error.message
  }
}

/** What listens there may be the same server's other port, or somebody else's. */
function otherDoors(url: string): string {
  return url.startsWith('tcp:')
    ? 'It has to be the address of `listen.tcp`; the HTTP port takes ws://HOST:PORT/monitor'
    : 'It has to be ws://HOST:PORT/monitor with the address of `listen.http`, or wss:// where a TLS proxy is before it'
}

function systemCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
