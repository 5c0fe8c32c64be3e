/**
 * `cinnabar token`: a token is made here and shown once; the server only ever gets its hash, so that nobody can read it
 * there, neither on the way nor in the database.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { newToken } from '../../client/index.ts'
import { parseDuration } from '../../server/config/duration.ts'
import { listByControl, tellControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { IDENTITY, whoIs } from '../identity.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, printList } from '../output/listing.ts'
import { formatTable } from '../output/table.ts'
import { formatTime } from '../output/text.ts'
import { numberOf, type Record, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Colors } from '../terminal.ts'

interface AddOptions extends LoginOptions {
  readonly name?: string
  readonly scope?: readonly string[]
  /** Seconds. */
  readonly expires?: number
  readonly out?: string
}

export function addToken(program: Command, cli: Cli): void {
  const { terminal } = cli
  const token = program.command('token').description('what programs log in with instead of a password')

  withLoginOptions(token.command('add'))
    .description('make a token of a user and print it, once')
    .argument('<user>', IDENTITY)
    .option('--name <text>', 'what it is for, to know it again in the list')
    .option('--scope <scope>', "all it may be used for, as 'COLLECT host.*'; again for more", scope)
    .option('--expires <duration>', 'how long it is good, as 90d; for ever unless given', seconds)
    .option('--out <file>', 'write it to a new file that only you can read, instead of printing it')
    .action((user: string, options: AddOptions) => {
      const who = whoIs(user)
      const { name, scope, expires, out } = options
      return withConsumer(cli, options, async (consumer) => {
        const { token: made, hash } = await newToken()
        // First of all: what cannot be kept must not be good for anything.
        if (out !== undefined) write(out, made)
        try {
          await tellControl(terminal, consumer, 'token.add', {
            ...who,
            hash,
            ...(name ? { name } : {}),
            ...(scope ? { scope: scope.join('\n') } : {}),
            ...(expires ? { expires_in_s: expires } : {}),
          })
        } catch (error) {
          if (out !== undefined) rmSync(out)
          throw error
        }
        if (out === undefined) await terminal.print(made)
      })
    })

  withLoginOptions(token.command('list'))
    .description('list the tokens: whose, what for, how long; never the tokens themselves')
    .argument('[user]', `only those of this ${IDENTITY}`)
    .option(...JSON_OPTION)
    .action((user: string | undefined, options: LoginOptions & { json?: boolean }) => {
      const who = user === undefined ? {} : whoIs(user)
      return withConsumer(cli, options, async (consumer) => {
        const tokens = await listByControl(terminal, consumer, 'token.list', who)
        const toText = (records: readonly Record[]) => table(records, terminal.colors)
        await printList(terminal, tokens, options.json, { none: 'there are no tokens', toText })
      })
    })

  withLoginOptions(token.command('revoke'))
    .description('end a token, and every session that it opened')
    .argument('<number>', 'as `cinnabar token list` shows it', tokenNumber)
    .action((number: number, options: LoginOptions) =>
      withConsumer(cli, options, async (consumer) => {
        await tellControl(terminal, consumer, 'token.revoke', { token: number })
      }),
    )
}

/** Never over a file that is there: it may be open to others, or a token that is still in use. Throws Failure. */
function write(file: string, token: string): void {
  try {
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'it is there already: name another' : message
    throw new Failure(ExitCode.FAILED, `no token can be written to ${file}: ${why}`, { cause: error })
  }
}

function table(tokens: readonly Record[], colors: Colors): string {
  const heads = ['token', 'tenant', 'user', 'name', 'scope', 'made', 'expires']
  const rows = tokens.map((token) =>
    heads.map((name) => {
      if (name === 'made') return formatTime(numberOf(token, name))
      if (name === 'expires') return numberOf(token, name) === 0 ? 'never' : formatTime(numberOf(token, name))
      return name === 'scope' ? textOf(token, name) || 'everything' : textOf(token, name)
    }),
  )
  return formatTable(
    heads.map((head) => ({ head, align: head === 'token' ? 'right' : 'left' })),
    rows,
    colors,
  )
}

function scope(text: string, before: readonly string[] = []): string[] {
  if (/^(COLLECT|EXECUTE|DEF_CHANNEL|\*) \S+$/.test(text)) return [...before, text]
  throw new InvalidArgumentError("It has to be a command and a pattern, as 'COLLECT host.*' or 'EXECUTE exec.x'.")
}

function seconds(text: string): number {
  const ms = parseDuration(text) ?? 0
  if (ms >= 1_000) return Math.floor(ms / 1_000)
  throw new InvalidArgumentError('It has to be a whole number with a unit, as 90d, 12h or 30m.')
}

function tokenNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be the number of a token, not the token itself.')
}
