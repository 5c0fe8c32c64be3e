/**
 * A file of YAML as tables of texts: each scalar is a text, null an empty one, and each problem has its line. The library is loaded only where
 * somebody has such a file.
 */

/** Keys, and numbers in lists from 0. */
export type Path = readonly (string | number)[]
type Say = (message: string, line: number | undefined) => void

/** Nodes with an anchor, and aliases: an alias is looked up among all of them. */
const MAX_ANCHORS = 2_000

/** As YAML 1.2 and its readers in Go have it; in quotes they are texts. */
const NULL = /^(?:~|null|Null|NULL)$/

/** A text of YAML whose scalars are texts. */
export interface Yaml {
  /** Undefined if there are problems. */
  readonly value: unknown
  readonly problems: readonly { readonly message: string; readonly line: number | undefined }[]
  /** The line of the innermost part of a path that is in the text. */
  readonly lineOf: (path: Path) => number | undefined
}

/** Its work grows with the text alone: the library compares each key of a table with all others, and aliases with anchors. */
export async function parseYaml(text: string): Promise<Yaml> {
  const { isAlias, isCollection, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } = await import(
    'yaml'
  )
  const lines = new LineCounter()
  const options = { schema: 'failsafe', merge: true, uniqueKeys: false, logLevel: 'error' } as const
  const document = parseDocument(text, { ...options, lineCounter: lines })
  const lineAt = (offset: number | undefined) => (offset === undefined ? undefined : lines.linePos(offset).line)
  const problems: Yaml['problems'][number][] = []
  const say = (message: string, offset?: number) =>
    void problems.push({ message: `not YAML: ${message.split('\n')[0]}`, line: lineAt(offset) })
  const lineOf = (path: Path): number | undefined => {
    let [node, offset]: [unknown, number | undefined] = [document.contents, undefined]
    for (const part of path) {
      if (isAlias(node)) node = node.resolve(document)
      const pair = isMap(node) ? node.items.find(({ key }) => String(key) === part) : undefined
      const next = isSeq(node) ? node.items[Number(part)] : pair?.value
      const shown = pair?.key ?? next
      if (!isNode(shown)) break
      offset = shown.range?.[0] ?? offset
      node = next
    }
    return lineAt(offset)
  }
  for (const { message, pos } of document.errors) say(message, pos[0])
  if (problems.length > 0) return { value: undefined, problems, lineOf }
  let anchors = 0
  try {
    visit(document, (_key, node) => {
      if (isAlias(node) || (isNode(node) && 'anchor' in node && node.anchor !== undefined)) anchors++
      if (isScalar(node)) {
        if (node.type === 'PLAIN' && node.tag === undefined && NULL.test(String(node.source))) node.value = ''
        if (/\p{Surrogate}/u.test(String(node.value))) say('half a surrogate pair is no character', node.range?.[0])
      }
      if (!isMap(node)) return
      const seen = new Set<string>()
      for (const { key } of node.items) {
        const name = String(key)
        if (isCollection(key)) say('a key has to be a text', key.range?.[0])
        if (seen.has(name) && name !== '<<')
          say(`the key ${JSON.stringify(name)} stands twice`, isNode(key) ? key.range?.[0] : undefined)
        seen.add(name)
      }
    })
    if (anchors > MAX_ANCHORS) say(`it has more than ${MAX_ANCHORS} anchors and aliases`)
    return { value: problems.length > 0 ? undefined : document.toJS(), problems, lineOf }
  } catch (error) {
    say((error as Error).message)
    return { value: undefined, problems, lineOf }
  }
}

/** What the file has at its top, where nothing is an empty table; undefined if it is not YAML or no table, which is said. */
export async function readYaml(text: string, say: Say): Promise<YamlTable | undefined> {
  const { value, problems, lineOf } = await parseYaml(text)
  for (const { message, line } of problems) say(message, line)
  if (problems.length > 0) return undefined
  const table = value === null || value === '' ? {} : value
  if (isTable(table)) return new YamlTable(table, [], (message, path) => say(message, lineOf(path)), lineOf)
  say('it is no table', undefined)
  return undefined
}

/** A table that another thread has read; nothing is wrong with it, so no line is asked for. */
export function readTable(plain: YamlTable['plain']): YamlTable {
  const unexpected = (message: string): never => {
    throw new Error(`a file that was checked: ${message}`)
  }
  return new YamlTable(plain, [], unexpected, () => undefined)
}

export class YamlTable {
  readonly #value: Readonly<Record<string, unknown>>
  readonly #path: Path
  readonly #say: (message: string, path: Path) => void
  readonly #lineOf: Yaml['lineOf']

  constructor(
    value: Readonly<Record<string, unknown>>,
    path: Path,
    say: (message: string, path: Path) => void,
    lineOf: Yaml['lineOf'],
  ) {
    this.#value = value
    this.#path = path
    this.#say = say
    this.#lineOf = lineOf
  }

  /** The line that it begins on. */
  get line(): number | undefined {
    return this.#lineOf(this.#path)
  }

  /** What it is made of: tables, lists and texts, which may go to another thread. */
  get plain(): Readonly<Record<string, unknown>> {
    return this.#value
  }

  get keys(): readonly string[] {
    return Object.keys(this.#value)
  }

  /** A problem with this table, or with something in it. */
  say(message: string, at: Path = []): void {
    this.#say(message, [...this.#path, ...at])
  }

  /** Says that all other keys are not supported, with what to do instead where that is known. */
  allow(keys: readonly string[], advice: Readonly<Record<string, string>> = {}): void {
    for (const key of this.keys) {
      if (keys.includes(key)) continue
      const instead = Object.hasOwn(advice, key) ? `: ${advice[key]}` : ''
      this.say(`\`${key}\` is not supported${instead}`, [key])
    }
  }

  text(key: string, byDefault = ''): string {
    const value = this.#at(key)
    if (value === undefined || typeof value === 'string') return value ?? byDefault
    this.say(`\`${key}\` is no text`, [key])
    return byDefault
  }

  /** Undefined if it is not there, is empty, or is not what was expected, which is said. */
  read<T>(key: string, decode: (text: string) => T | undefined, expected: string): T | undefined {
    const text = this.text(key)
    if (text === '') return undefined
    const value = decode(text)
    if (value === undefined) this.say(`\`${key}\`: expected ${expected}, found ${JSON.stringify(text)}`, [key])
    return value
  }

  oneOf<const T extends string>(key: string, words: readonly T[], byDefault: T): T {
    const find = (text: string): T | undefined => words.find((word) => word === text.toLowerCase())
    return this.read(key, find, `one of ${words.join(', ')}`) ?? byDefault
  }

  flag(key: string, byDefault: boolean): boolean {
    const decode = (text: string) => (text === 'true' ? true : text === 'false' ? false : undefined)
    return this.read(key, decode, 'true or false') ?? byDefault
  }

  texts(key: string): readonly string[] {
    const value = this.#at(key) || []
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    this.say(`\`${key}\` is no list of texts`, [key])
    return []
  }

  /** Empty if it is not there, or if nothing is. */
  table(key: string): YamlTable {
    const value = this.#at(key) || {}
    if (!isTable(value)) this.say(`\`${key}\` is no table`, [key])
    return new YamlTable(isTable(value) ? value : {}, [...this.#path, key], this.#say, this.#lineOf)
  }

  tables(key: string): readonly YamlTable[] {
    const value = this.#at(key) || []
    if (!Array.isArray(value)) {
      this.say(`\`${key}\` is no list`, [key])
      return []
    }
    return value.flatMap((item: unknown, index) => {
      if (isTable(item)) return new YamlTable(item, [...this.#path, key, index], this.#say, this.#lineOf)
      this.say(`\`${key}\` has something that is no table`, [key, index])
      return []
    })
  }

  #at(key: string): unknown {
    return Object.hasOwn(this.#value, key) ? this.#value[key] : undefined
  }
}

export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
