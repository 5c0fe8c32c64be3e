/**
 * Notifiers that users put: tables `[[notify]]` as in the configuration, in TOML. What is a file there is none of this machine: its
 * contents come beside the tables, and a table is given them by the name of the key.
 */
import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { stringify } from 'smol-toml'
import {
  type ConfigFile,
  type ConfigProblem,
  explainIssue,
  isTomlTable,
  readConfigFile,
  schemaOf,
  tableKeys,
} from '../../../kit/config.ts'
import { authorizationFrom, type ReadContents, tlsFrom } from '../../../kit/io/address.ts'
import { signingKeys } from '../../../kit/io/signing.ts'
import { type NotifierTable, withBody } from '../bodies.ts'
import { type NotifyTable, parseNotifyUrl, putSection } from '../config.ts'
import { boundedMatcher, explainNoMatcher, MAX_PARTS } from '../matchers.ts'

/** The keys that name files in the configuration. */
export const FILE_KEYS = ['template', 'token_file', 'password_file', 'secret_file', 'ca', 'cert', 'key'] as const
/** Of one file, in characters. */
export const MAX_CONTENTS = 65_536
/** What says whose a notifier is, which follows from who puts it. */
export const OWN_KEYS: Readonly<Record<string, string>> = {
  tenant: 'a notifier belongs to the tenant of whoever puts it',
  role: 'a notifier reads what whoever puts it may read',
}
/** The name of what is read, in errors. */
const SOURCE = 'notifiers'

export const putSchema = schemaOf({ notify: putSection })

/** The contents of files by key, of one notifier. */
export type Contents = Readonly<Record<string, string>>

/** What is secret of a notifier. */
export interface NotifierSecrets {
  readonly url: string
  readonly contents: Contents
}

export interface GivenNotifier {
  readonly table: NotifyTable
  /** What its table says, in TOML, without anything secret. */
  readonly settings: string
  readonly secrets: NotifierSecrets
}

export type GivenNotifiers = readonly GivenNotifier[] | { readonly problems: readonly ConfigProblem[] }

type Given = Readonly<Record<string, unknown>>

/** Reads tables of a tenant, and the contents of their files: JSON like {"pager": {"token_file": "..."}}, '' if they have none. */
export function readNotifiers(tenant: string, text: string, contentsText: string): GivenNotifiers {
  const read = readConfigFile(SOURCE, () => Buffer.from(text))
  if (read.problems.length > 0) return { problems: read.problems }
  const contents = contentsIn(contentsText)
  if (contents === undefined) {
    const example = '{"pager": {"token_file": "..."}}'
    const what = `a JSON object like ${example}, with the keys ${FILE_KEYS.join(', ')}, and at most ${MAX_CONTENTS} characters in each`
    return { problems: [{ source: 'secrets', message: `expected ${what}` }] }
  }
  // Its lines are not looked for: that takes long where somebody means it to.
  const file: ConfigFile = { ...read, lineOf: () => undefined }
  const given = tablesIn(file)
  const problems = given.flatMap((table) => ownProblems(table, contents.get(nameOf(table)) ?? {}))
  for (const name of contents.keys())
    if (!given.some((table) => nameOf(table) === name))
      problems.push({ source: 'secrets', message: `${JSON.stringify(name)} is none of these notifiers` })
  if (problems.length > 0) return { problems }
  return checked(tenant, file, (name) => contents.get(name) ?? {})
}

/** Reads one that was stored. */
export function readStored(tenant: string, settings: string, { url, contents }: NotifierSecrets): GivenNotifiers {
  const file = readConfigFile(SOURCE, () => Buffer.from(settings))
  const notify = tablesIn(file).map((table) => ({ ...table, url }))
  return checked(tenant, { ...file, table: { notify }, lineOf: () => undefined }, () => contents)
}

/** What of `notifiers` may be seen: of URLs the beginning, and no key that is none, which may be misspelt. Empty if it has no tables. */
export function withoutSecrets(text: string): string {
  const known = Object.keys(tableKeys(putSection.type) ?? {})
  const seen = tablesIn(readConfigFile(SOURCE, () => Buffer.from(text))).map((table) =>
    Object.fromEntries(Object.entries(settingsOf(table)).filter(([key]) => known.includes(key))),
  )
  try {
    return seen.length === 0 ? '' : stringify({ notify: seen })
  } catch {
    // It has what is no value of any key.
    return ''
  }
}

/** What a table says, by key, with nothing secret. */
export function settingsIn(settings: string): Given {
  return tablesIn(readConfigFile(SOURCE, () => Buffer.from(settings)))[0] ?? {}
}

/** The table as it runs. Rejects with an error for people if one of its files is wrong. */
export async function ready({ table, secrets }: GivenNotifier, nowMs: number): Promise<NotifierTable> {
  const read = readerOfContents(secrets.contents)
  checkPutMatchers(table)
  await authorizationFrom({ ...table, read })
  if (table.secretFile !== undefined) await signingKeys(table.secretFile, read)
  if (table.ca !== undefined) certificateIn(await read(table.ca))
  if (table.cert !== undefined) pairIn(await tlsFrom({ ...table, read }, 'localhost'))
  if (table.template === undefined) return { ...table, body: '' }
  const body = await read(table.template)
  try {
    return withBody(table, body, nowMs)
  } catch (error) {
    throw new Error(`\`template\`: ${(error as Error).message}`)
  }
}

/** Throws an error for people at the first matcher that is none, or whose regular expression is too much beside those before it. */
function checkPutMatchers({ match, inhibit }: NotifyTable): void {
  const inhibiting = inhibit.flatMap(({ source, target }) => [...source, ...target])
  let left = MAX_PARTS
  for (const [key, texts] of Object.entries({ match, inhibit: inhibiting }))
    for (const text of texts) {
      const matcher = boundedMatcher(text, left)
      if (matcher === undefined) throw new Error(`\`${key}\`: ${explainNoMatcher(text)}`)
      if (matcher === 'too large')
        throw new Error(
          `\`${key}\`: with ${JSON.stringify(text)}, the regular expressions of \`match\` and \`inhibit\` have more than ${MAX_PARTS} parts together: write shorter ones, or several notifiers`,
        )
      left -= matcher.size
    }
}

/** Throws an error for people if there is none. */
function certificateIn(pem: string): void {
  try {
    new X509Certificate(pem)
  } catch {
    throw new Error('ca holds no certificate in PEM')
  }
}

/** The same of a certificate and its key. */
function pairIn(options: SecureContextOptions): void {
  try {
    createSecureContext(options)
  } catch {
    throw new Error('cert and key hold no certificate in PEM with its key')
  }
}

/** Reads the contents that were put, and no file of this machine. */
export function readerOfContents(contents: Contents): ReadContents {
  return async (key) => {
    const text = Object.hasOwn(contents, key) ? contents[key] : undefined
    if (text === undefined) throw new Error(`the contents of \`${key}\` are missing`)
    return text
  }
}

function checked(tenant: string, file: ConfigFile, contentsOf: (name: string) => Contents): GivenNotifiers {
  const given = tablesIn(file)
  const named = given.map((table) => {
    const keys = Object.keys(contentsOf(nameOf(table))).map((key) => [key, key])
    return { ...table, ...Object.fromEntries(keys) }
  })
  // What is no table there is found to be none.
  const list = file.table['notify'] ?? []
  const isList = Array.isArray(list) && list.every(isTomlTable)
  const notify = named.map((one) => ({ ...one, tenant }))
  const result = putSchema.type.safeParse(isList ? { ...file.table, notify } : file.table)
  if (!result.success)
    return { problems: result.error.issues.flatMap((issue) => explainIssue(issue, putSchema, file, [])) }
  const { notify: tables } = result.data as { readonly notify: readonly NotifyTable[] }
  if (tables.length === 0) return { problems: [{ source: SOURCE, message: 'there is no table [[notify]]' }] }
  return tables.map((table, at) => {
    const written = named[at] as Given
    const contents = contentsOf(table.name)
    return {
      table,
      settings: stringify({ notify: [settingsOf(written)] }),
      secrets: { url: String(written['url']), contents },
    }
  })
}

function tablesIn({ table }: ConfigFile): readonly Given[] {
  const found = table['notify']
  return Array.isArray(found) ? (found as readonly unknown[]).filter(isTomlTable) : []
}

function nameOf(table: Given): string {
  return String(table['name'])
}

/** A table without the secret part of its URL, and with nothing of files but that they are there. */
function settingsOf(table: Given): Record<string, unknown> {
  const entries = Object.entries(table).map(([key, value]): [string, unknown] => {
    if (key === 'url') return [key, parseNotifyUrl(String(value))?.shown ?? '']
    return [key, (FILE_KEYS as readonly string[]).includes(key) ? key : value]
  })
  return Object.fromEntries(entries)
}

/** What is right in the configuration, and wrong here. */
function ownProblems(table: Given, contents: Contents): ConfigProblem[] {
  const problem = (key: string, message: string): ConfigProblem => {
    return { source: SOURCE, message: `\`[[notify]]\` ${nameOf(table)}: \`${key}\`: ${message}` }
  }
  const owned = Object.entries(OWN_KEYS).flatMap(([key, why]) =>
    key in table ? [problem(key, `${why}: leave this out`)] : [],
  )
  const missing = FILE_KEYS.filter((key) => key in table && !Object.hasOwn(contents, key))
  return [
    ...owned,
    ...missing.map((key) =>
      problem(key, 'no file of the server is read: `secrets` has to have the contents of this one'),
    ),
  ]
}

/** By the names of notifiers; undefined if it is no such JSON, of which nothing is repeated. */
function contentsIn(text: string): ReadonlyMap<string, Contents> | undefined {
  let parsed: unknown
  try {
    parsed = text === '' ? {} : JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isTomlTable(parsed)) return undefined
  const isContents = (one: unknown): one is Contents =>
    isTomlTable(one) &&
    Object.entries(one).every(
      ([key, value]) =>
        (FILE_KEYS as readonly string[]).includes(key) && typeof value === 'string' && value.length <= MAX_CONTENTS,
    )
  const entries = Object.entries(parsed)
  return entries.every(([, one]) => isContents(one)) ? new Map(entries as [string, Contents][]) : undefined
}
