/** Connects for the length of one command, and says what to do where that fails. */
import { type ChannelOptions, type Connect, ConnectionError, type Consumer, StatusError } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { type Login, type LoginOptions, resolveLogin } from './login.ts'
import { printable } from './output/text.ts'
import { whileWaiting } from './progress.ts'
import type { Terminal } from './terminal.ts'

export { withLoginOptions } from './login.ts'

/** What commands work with; tests hand in their own. */
export interface Cli {
  readonly terminal: Terminal
  readonly connect: Connect
}

/** `channel`: what the consumer's channel is to be. Without it there is no second connection where the first is lost. */
export async function withConsumer(
  { terminal, connect }: Cli,
  options: LoginOptions,
  work: (consumer: Consumer) => Promise<void>,
  channel?: ChannelOptions,
): Promise<void> {
  const login = await resolveLogin(options, terminal)
  const connecting = connect(login.url, login.credentials, { ...login.link, ...(channel ?? { reconnect: false }) })
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

/** Throws Failure where others could read along. */
export function checkConfidential({ isConfidential }: Pick<Consumer, 'isConfidential'>, what: string): void {
  if (isConfidential) return
  const advice = 'call this on the machine that the server runs on, or over tls://, wss:// or --wrap tls'
  throw new Failure(ExitCode.FAILED, `${what} would travel where others can read it: ${advice}`)
}

function explained(error: unknown, login: Login): unknown {
  // The channel that was asked for could not be had.
  if (!(error instanceof ConnectionError)) return refused(error, login)
  const { urlFrom, used } = login
  // The URL itself may hold a password here.
  if (error.code === 'BAD_URL') {
    return new Failure(ExitCode.USAGE, `${error.message}\nThe URL came from ${urlFrom}`, { cause: error })
  }
  return new Failure(ExitCode.FAILED, `${advice(error, login)}\nTried: ${used}`, { cause: error })
}

/** What the producer refused, or how the connection ended, with what to do and who asked. */
function refused(error: unknown, login: Login): unknown {
  if (!(error instanceof StatusError || error instanceof ConnectionError)) return error
  const todo = error instanceof StatusError ? ADVICE[error.status]?.(error, login) : undefined
  const message = [error.message, ...(todo ? [todo] : []), `Asked: ${login.used}`].join('\n')
  return new Failure(ExitCode.FAILED, message, { cause: error })
}

const ADVICE: Readonly<Record<string, (error: StatusError, login: Login) => string>> = {
  NO_SUCH_METRIC: () => '`cinnabar metrics` lists those that this user can read',
  NO_SUCH_CONTROL: () =>
    '`cinnabar get producer.controls` lists those that this user is shown; another may be shown more: see --user',
  NO_SUCH_CHANNEL: () => '`cinnabar channels` lists those that this user has',
  PERMISSION_DENIED: ({ command }, login) =>
    `\`cinnabar explain ${login.user ?? 'USER'} ${command} OBJECT\`, asked by an admin, says which rule forbids it; ` +
    besidesRules(command, login),
  QUOTA_EXCEEDED: () => '`cinnabar tenant list`, asked by an admin, shows what of its quota each tenant has used',
  BUSY: () => 'try again in a moment',
  STORAGE_FULL: () => "make room on the disk of the server's data directory; it goes on by itself then",
}

/** What forbids something although rules allow it. */
function besidesRules(command: string, { credentials }: Login): string {
  if (command === 'DEF_CHANNEL') return 'or `dial.allow` in the configuration leaves the destination out'
  if (!('token' in credentials)) return 'see also --user'
  return "or the token's scope leaves it out: see `cinnabar token list`"
}

function advice(error: ConnectionError, login: Login): string {
  const { url, credentials } = login
  switch (error.code) {
    case 'UNREACHABLE':
      return systemCode(error.cause) === 'ECONNREFUSED'
        ? `nothing listens on ${new URL(url).host}: start the server with \`npm start\`, or name another with --url`
        : `${error.message.trim()}\n${otherDoors(url)}`
    case 'TIMEOUT':
    case 'PROTOCOL':
      return `${error.message}\n${otherDoors(url)}`
    case 'LOGIN_FAILED':
      return `${error.message}\n${notAdmitted(error, login)}`
    case 'NO_METHOD':
      return 'certificate' in credentials ? `${error.message}\n${NOT_ADMITTED.certificate}` : error.message
    case 'SERVER_NOT_PROVEN':
      return `${error.message}\nIt is not the server that this secret belongs to; it was not shown the secret`
    case 'UNTRUSTED':
      return `${error.message}\nHere that is --ca FILE or CINNABAR_CA; nothing secret was sent`
    case 'BAD_TLS':
      return `${error.message}\nThe files are those of --ca, --cert and --key`
    case 'NO_LAYER':
      return `${error.message}\nLeave out --wrap, or have the server offer it: \`tls\` needs its section [tls]`
    default:
      return error.message
  }
}

/** What was right, but not to be had, is another matter than a secret that is wrong. */
function notAdmitted({ cause }: ConnectionError, login: Login): string {
  const other = cause instanceof StatusError ? ADVICE[cause.status]?.(cause, login) : undefined
  return other ?? NOT_ADMITTED[kindOf(login.credentials)]
}

type Kind = 'password' | 'token' | 'certificate'

const NOT_ADMITTED: Readonly<Record<Kind, string>> = {
  password:
    "There is no such user, the secret is another one's (see --user and --secret-file), or too many were wrong of late: " +
    'then it is not looked at for a minute or more',
  token:
    'It was revoked, has expired, or is not one of this server: `cinnabar token list`, asked by an admin, tells; ' +
    "of a JWT the server's log says why",
  certificate:
    'There is no user of its name, or it is good no more: see `client_ca` and `client_revoked` of the server',
}

function kindOf(credentials: Login['credentials']): Kind {
  if ('token' in credentials) return 'token'
  return 'certificate' in credentials ? 'certificate' : 'password'
}

/** What listens there may be the same server's other port, or somebody else's. */
function otherDoors(url: string): string {
  return DOORS[new URL(url).protocol] ?? ''
}

const DOORS: Readonly<Record<string, string>> = {
  'tcp:':
    'It has to be the address of `listen.tcp`; that of `listen.tls` takes tls://, and the HTTP port ws://HOST:PORT/monitor',
  'tls:': 'It has to be the address of `listen.tls`; that of `listen.tcp` takes tcp:// with --wrap tls',
  'ws:': 'It has to be ws://HOST:PORT/monitor with the address of `listen.http`, or wss:// with that of `listen.https`',
  'wss:':
    'It has to be wss://HOST:PORT/monitor with the address of `listen.https`, or of a TLS proxy before `listen.http`',
}

function systemCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
