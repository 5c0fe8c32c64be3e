/**
 * The tables of docs/statuses.md, docs/commands.md and docs/cli.md, generated from the sources, so that they cannot differ.
 * Only the text between `<!-- table: NAME -->` and `<!-- end -->` is generated; the text around it is written by hand.
 * `npx tsx test/support/documents.ts` rewrites the files; test/documents.test.ts fails when that is due.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AuthErrorCode } from '../../auth/errors.ts'
import type { ProtocolErrorCode } from '../../protocol/errors.ts'
import type { CommandDeclaration } from '../../protocol/monitor/commands.ts'
import { commands } from '../../protocol/monitor/commands.ts'
import { statuses } from '../../protocol/monitor/status.ts'
import type { StorageErrorCode } from '../../storage/store.ts'
import { commandLine } from './command-line.ts'

const ROOT = new URL('../../', import.meta.url)

const protocolErrors: Readonly<Record<ProtocolErrorCode, string>> = {
  FRAME_TOO_LONG: 'The length of a frame is above the limit in force; it is refused before its bytes arrive.',
  FRAME_TOO_SHORT: 'The length of a frame is below 8, the least a frame can have.',
  FRAME_UNALIGNED: 'The length of a frame is not a multiple of 4.',
  TRUNCATED: 'A field extends beyond the end of the input.',
  TRAILING_BYTES: 'There are bytes after the last field.',
  BAD_PADDING: 'The bytes that fill a field up to a multiple of 4 are not zero; in smon, FE is missing after 16 FF.',
  BAD_UTF8: 'A text that has to be UTF-8 is not.',
  BAD_NAME: 'A name is empty, too short, too long, not Unicode, or contains a control character.',
  BAD_BOOLEAN: 'A boolean is neither 0 nor 1.',
  BAD_TYPE: 'A type has a number that does not exist, or that is not allowed there.',
  BAD_COUNT: 'A count is larger than what can follow it; in smon, too many tokens, or no index to replace.',
  BAD_NUMBER:
    'A text is not a number, or the number does not fit its type; in smon, a number that is not allowed there.',
  BAD_COMPRESSION: 'The body of a request is not compressed in the way that it says.',
  BAD_JSON: 'A text message is not JSON, or not the JSON of a command or of metrics.',
  BAD_PROTOBUF: 'A request to take metrics is not a message of protocol buffers.',
  DUPLICATE_NAME: 'An argument is given twice.',
  TOO_DEEP: 'RECs and ARRAYs are nested deeper than 4; in smon, too many indexes.',
  TOO_LONG: 'A text or byte string is longer than allowed there.',
  UNKNOWN_MESSAGE: 'The number of a message is neither a metric id nor one of the messages.',
}

const authErrors: Readonly<Record<AuthErrorCode, string>> = {
  BAD_IDENTITY: 'A name is not of the form `user` or `tenant/user`.',
  BAD_KEYS: 'The file of keys for JSON Web Tokens cannot be used; the message says why.',
  BAD_PASSWORD: 'A new password is empty, too long, or contains characters that cannot be typed reliably.',
  BAD_SCOPE: 'The scope of a token does not consist of lines like `COLLECT host.*`.',
  HASHER_BUSY: 'Too many passwords are waiting to be checked; try again.',
  HASHER_CLOSED: 'The server is stopping and does not check passwords any more.',
  NO_CRYPTO: 'The browser offers no WebCrypto, because the page came neither over https nor from this host.',
  SCRAM_MALFORMED: 'A SCRAM message of the server does not follow RFC 5802.',
  SCRAM_REFUSED: 'The server refused the exchange, or asked for something that this client refuses.',
  SERVER_NOT_PROVEN: 'The server could not prove that it knows the password; it may not be the intended server.',
}

const storageErrors: Readonly<Record<StorageErrorCode, string>> = {
  LOCKED: 'Another server uses this data directory.',
  NOT_WRITABLE: 'The data directory or a file in it cannot be written.',
  TOO_NEW: 'The data was written by a newer version; it was not changed.',
  DAMAGED: 'The database cannot be read; it was left as it is.',
  FULL: 'The disk is full.',
  IO: 'Reading or writing failed; the system log says why.',
  UNREACHABLE: 'The nats-servers that keep the log of the cluster do not answer now.',
  FOREIGN: 'The database is not part of the log of its cluster.',
  BEHIND: 'The log of the cluster no longer has the records that the database needs.',
  DEPOSED: 'Another node of the cluster leads.',
}

const tables: Readonly<Record<string, () => string>> = {
  statuses: () =>
    table(
      ['code', 'status', 'meaning'],
      Object.entries(statuses).map(([name, { code, text }]) => [String(code), `\`${name}\``, text]),
    ),
  'protocol errors': () => codes(protocolErrors),
  'auth errors': () => codes(authErrors),
  'storage errors': () => codes(storageErrors),
  'command line': commandLine,
  commands: () =>
    table(
      ['number', 'command', 'fields after `uint32 number, uint32 seq`', 'result', 'what it does'],
      Object.entries<CommandDeclaration>(commands).map(([name, command]) => [
        String(command.code),
        `[${name}](#${name.toLowerCase()})`,
        fieldsOf(command),
        command.result,
        summaryOf(name),
      ]),
    ),
}

function codes(sentences: Readonly<Record<string, string>>): string {
  return table(
    ['code', 'meaning'],
    Object.entries(sentences).map(([code, sentence]) => [`\`${code}\``, sentence]),
  )
}

function fieldsOf({ fields }: CommandDeclaration): string {
  const words = Object.entries(fields).map(([name, { word, optional }]) => {
    const field = `${word} **${name}**`
    return optional === undefined ? field : `[${field}]`
  })
  return words.join(', ') || '-'
}

/** The sentence above a command's declaration. */
function summaryOf(name: string): string {
  const path = 'protocol/monitor/commands.ts'
  const text = readFileSync(new URL(path, ROOT), 'utf8')
  const comment = new RegExp(`/\\*\\* (.+) \\*/\n  ${name}: {`).exec(text)
  if (comment === null) throw new Error(`${path} has no comment of one line above the declaration of ${name}`)
  return comment[1]!
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`
}

/** Generates all tables of a text again. A table with an unknown name is an error. */
export function refresh(text: string): string {
  return text.replace(/(<!-- table: (.+?) -->\n)[\s\S]*?(<!-- end -->)/g, (_, begin, name, end) => {
    const make = tables[name]
    if (make === undefined) throw new Error(`no table is called "${name}"; there are ${Object.keys(tables).join(', ')}`)
    return `${begin}\n${make()}\n${end}`
  })
}

export interface Document {
  readonly path: string
  /** As it is. */
  readonly text: string
  /** As it should be. */
  readonly fresh: string
}

export function documents(): Document[] {
  return ['docs/statuses.md', 'docs/commands.md', 'docs/cli.md'].map((path) => {
    const text = readFileSync(new URL(path, ROOT), 'utf8')
    return { path, text, fresh: refresh(text) }
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, text, fresh } of documents()) {
    if (text !== fresh) writeFileSync(new URL(path, ROOT), fresh)
    console.log(`${path}: ${text === fresh ? 'as it was' : 'rewritten'}`)
  }
}
