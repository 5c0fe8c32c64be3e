/**
 * Files with targets, as `file_sd` of Prometheus has them: JSON or YAML, read again when they change. What cannot be read leaves the
 * targets of that file as they were, and is reported once. A file that is gone takes its targets with it.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { Clock } from '../../../kit/running.ts'
import { isTable, parseYaml } from '../../../kit/yaml-table.ts'
import type { LabelTexts, TargetGroup } from './job.ts'

/** A file is parsed in one step. */
const MAX_BYTES = 1 << 20
const MAX_FILES = 1_000
/** A path, as Prometheus takes it. */
export const TARGET_FILE = /^[^*\0]*(\*[^/\0]*)?\.(json|yml|yaml|JSON|YML|YAML)$/
const FILE_LABEL = '__meta_filepath'

export interface TargetFilesOptions {
  /** Absolute paths; the last part may have stars. */
  readonly paths: readonly string[]
  /** After so many milliseconds a file is read again even if it looks the same. */
  readonly refreshMs: number
  readonly clock: Pick<Clock, 'monotonicMs'>
}

interface KnownFile {
  /** What it looked like when it was read last. */
  readonly looks: string
  readonly readMs: number
  /** Those that it had when it could be read last. */
  readonly groups: readonly TargetGroup[]
  /** Why it cannot be used as it is now; undefined if it can. */
  readonly problem: string | undefined
}

export class TargetFiles {
  readonly #options: TargetFilesOptions
  #files: ReadonlyMap<string, KnownFile> = new Map()
  /** Problems with directories. */
  #problems: readonly string[] = []
  #isRead = false
  #looking: Promise<boolean> | undefined

  constructor(options: TargetFilesOptions) {
    this.#options = options
  }

  /** Whether they have been read at all. */
  get isRead(): boolean {
    return this.#isRead
  }

  get groups(): readonly TargetGroup[] {
    return [...this.#files.values()].flatMap(({ groups }) => groups)
  }

  /** Why targets may be missing or out of date, for people. */
  get problems(): readonly string[] {
    const ofFiles = [...this.#files].map(([path, { problem }]) => problem && `${path}: ${problem}`)
    return [...this.#problems, ...ofFiles].filter((problem) => problem !== undefined)
  }

  /** Reads what has changed. Resolves to whether targets or problems have; never rejects. */
  look(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<boolean> {
    const [files, before] = [new Map<string, KnownFile>(), this.#files]
    const problems: string[] = []
    const paths = new Set<string>()
    for (const pattern of this.#options.paths) {
      for (const path of await this.#matching(pattern, problems)) paths.add(path)
    }
    if (paths.size > MAX_FILES) problems.push(`${paths.size} files match: the first ${MAX_FILES} are read`)
    for (const path of [...paths].sort().slice(0, MAX_FILES)) {
      const file = await this.#file(path)
      if (file !== undefined) files.set(path, file)
    }
    const areSame = files.size === before.size && [...files].every(([path, file]) => before.get(path) === file)
    const isChanged = !this.#isRead || !areSame || problems.join() !== this.#problems.join()
    this.#files = files
    this.#problems = problems
    this.#isRead = true
    return isChanged
  }

  async #matching(pattern: string, problems: string[]): Promise<readonly string[]> {
    const [directory, last] = [dirname(pattern), basename(pattern)]
    if (!last.includes('*')) return [pattern]
    const expression = new RegExp(`^${last.split('*').map(escaped).join('.*')}$`, 's')
    try {
      return (await readdir(directory)).filter((name) => expression.test(name)).map((name) => join(directory, name))
    } catch (error) {
      problems.push(messageOf(error))
      // Its files are not known to be gone.
      return [...this.#files.keys()].filter((path) => dirname(path) === directory && expression.test(basename(path)))
    }
  }

  /** Undefined if it is not there. */
  async #file(path: string): Promise<KnownFile | undefined> {
    const known = this.#files.get(path)
    const now = this.#options.clock.monotonicMs()
    try {
      const { mtimeMs, size, ino, isFile } = await looksOf(path)
      const looks = `${mtimeMs} ${size} ${ino}`
      if (known?.looks === looks && now - known.readMs < this.#options.refreshMs) return known
      const seen = { looks, readMs: now, groups: known?.groups ?? [] }
      try {
        const groups = await groupsFrom(path, await boundedText(path, { size, isFile }))
        return { ...seen, groups, problem: undefined }
      } catch (error) {
        return { ...seen, problem: messageOf(error) }
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      const problem = messageOf(error)
      return known?.problem === problem ? known : { looks: '', readMs: now, groups: known?.groups ?? [], problem }
    }
  }
}

export async function looksOf(path: string) {
  const stats = await stat(path)
  return { mtimeMs: stats.mtimeMs, size: stats.size, ino: stats.ino, isFile: stats.isFile() }
}

/** The text of a file that looks so. Throws an error for people. */
export async function boundedText(path: string, { size, isFile }: { size: number; isFile: boolean }): Promise<string> {
  if (!isFile) throw new Error('it is no file')
  if (size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
  return readFile(path, 'utf8')
}

/** The groups of a file. Throws an error for people. */
async function groupsFrom(path: string, text: string): Promise<readonly TargetGroup[]> {
  const isJson = extname(path).toLowerCase() === '.json'
  const groups = groupsOf(isJson ? JSON.parse(text) : await valueOfYaml(text))
  return groups.map(({ targets, labels }) => ({ targets, labels: { ...labels, [FILE_LABEL]: path } }))
}

async function valueOfYaml(text: string): Promise<unknown> {
  const { value, problems } = await parseYaml(text)
  for (const { message, line } of problems) throw new Error(line === undefined ? message : `line ${line}: ${message}`)
  return value
}

/** A list of groups, each with `targets` and perhaps `labels`. Throws an error for people. */
export function groupsOf(list: unknown): readonly TargetGroup[] {
  // An empty file of YAML is no list.
  if (list === null || list === undefined || list === '') return []
  if (!Array.isArray(list)) throw new Error('it is no list of groups with `targets` and `labels`')
  return list.map((group: unknown, index) => groupOf(group, `group ${index + 1}`))
}

function groupOf(group: unknown, place: string): TargetGroup {
  if (!isTable(group)) throw new Error(`${place} is no table with \`targets\` and \`labels\``)
  const { targets = [], labels = {}, ...others } = group
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new Error(`${place} has the unknown key ${JSON.stringify(unknown)}`)
  if (!Array.isArray(targets) || !targets.every((target) => typeof target === 'string'))
    throw new Error(`${place}: \`targets\` is no list of texts`)
  if (!isTable(labels)) throw new Error(`${place}: \`labels\` is no table`)
  const wrong = Object.entries(labels).find(([, text]) => typeof text !== 'string')
  if (wrong !== undefined) throw new Error(`${place}: the label \`${wrong[0]}\` has no text`)
  return { targets, labels: labels as LabelTexts }
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ').slice(0, 300)
}
