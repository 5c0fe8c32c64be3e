/**
 * `cinnabar token`: a token is generated here and shown once. The server receives only its hash, so that nobody can read the
 * token on the way there or in the database.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { newToken } from '../../client/index.ts'
import { USER_HELP, userArguments, wholeNumber, wholeSeconds } from '../arguments.ts'
import { callControl, printControlList, runAndReport } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatTime } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { formatTable, JSON_OPTION, type JsonOptions } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldText } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Colors } from '../terminal.ts'

interface AddOptions extends LoginOptions {
  readonly name?: string
  readonly scope?: readonly string[]
  /** The lifetime in seconds. */
  readonly expires?: number
  readonly out?: string
}

export function addToken(program: Command, cli: Cli): void {
  const { terminal } = cli
  const token = program.command('token').description('manage tokens, with which programs log in instead of a password')

  withLoginOptions(token.command('add'))
    .description('generate a token for a user and print it once')
    .argument('<user>', USER_HELP)
    .option('--name <text>', 'purpose of the token, shown in the list')
    .option('--scope <scope>', "limit what the token allows: 'COLLECT host.*'; may be repeated", scope)
    .option('--expires <duration>', 'lifetime, for example 90d (default: unlimited)', wholeSeconds)
    .option('--out <file>', 'write the token to a new file that only you can read, instead of printing it')
    .action((user: string, options: AddOptions) => {
      const args = userArguments(user)
      const { name, scope, expires, out } = options
      return withConsumer(cli, options, async (consumer) => {
        const { token: text, hash } = await newToken()
        // The file is written first: a token that cannot be stored must not become valid.
        if (out !== undefined) write(out, text)
        try {
          await runAndReport(terminal, consumer, 'token.add', {
            ...args,
            hash,
            ...(name ? { name } : {}),
            ...(scope ? { scope: scope.join('\n') } : {}),
            ...(expires ? { expires_in_s: expires } : {}),
          })
        } catch (error) {
          if (out !== undefined) rmSync(out)
          throw error
        }
        if (out === undefined) await terminal.print(text)
      })
    })

  withLoginOptions(token.command('list'))
    .description('list the tokens with user, purpose and lifetime, but without the secret')
    .argument('[user]', `list only the tokens of this user (${USER_HELP})`)
    .option(...JSON_OPTION)
    .action((user: string | undefined, options: JsonOptions) => {
      const args = user === undefined ? {} : userArguments(user)
      const toText = (records: readonly AnswerRecord[], width?: number) => table(records, terminal.colors, width)
      return printControlList(cli, options, 'token.list', { none: 'there are no tokens', toText }, args)
    })

  withLoginOptions(token.command('revoke'))
    .description('revoke a token and end every session opened with it')
    .argument('<number>', 'number as listed by `cinnabar token list`', tokenNumber)
    .action((token: number, options: LoginOptions) => callControl(cli, options, 'token.revoke', { token }))
}

/** Never overwrites a file: it may be readable by others, or contain a token that is still in use. Throws Failure. */
function write(file: string, token: string): void {
  try {
    writeFileSync(file, `${token}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'the file exists: choose another name' : message
    throw new Failure(ExitCode.FAILED, `cannot write the token to ${file}: ${why}`, { cause: error })
  }
}

function table(tokens: readonly AnswerRecord[], colors: Colors, width?: number): string {
  const heads = ['token', 'tenant', 'user', 'name', 'scope', 'made', 'expires']
  const rows = tokens.map((token) =>
    heads.map((name) => {
      if (name === 'made') return formatTime(fieldNumber(token, name))
      if (name === 'expires') return fieldNumber(token, name) === 0 ? 'never' : formatTime(fieldNumber(token, name))
      return name === 'scope' ? fieldText(token, name) || 'everything but PUBLISH' : fieldText(token, name)
    }),
  )
  return formatTable(
    heads.map((head) => ({ head, align: head === 'token' ? 'right' : 'left' })),
    rows,
    colors,
    width,
  )
}

function scope(text: string, before: readonly string[] = []): string[] {
  if (/^(COLLECT|EXECUTE|DEF_CHANNEL|PUBLISH|\*) \S+$/.test(text)) return [...before, text]
  throw new InvalidArgumentError("Expected a command and a pattern, such as 'COLLECT host.*' or 'EXECUTE exec.x'.")
}

const tokenNumber = wholeNumber(1, 9_999_999_999, 'the number of a token, not the token itself')
