/** What is committed: which packages are named and locked, and that nothing of a machine or of an unfinished merge is in it. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
/** Files that belong to the tree: tracked, or new and not ignored. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: ROOT })
  .toString()
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)))
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8')

describe('dependencies', () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(text('package.json'))
  const named = [...text('docs/dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1])

  it('each have one line in docs/dependencies.md, and nothing else has', () => {
    expect(named.toSorted()).toEqual(
      Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies }).toSorted(),
    )
  })

  it('are locked without the address they came from', () => {
    expect(text('package-lock.json')).not.toContain('"resolved": "http')
  })
})

describe('what is committed', () => {
  /** Paths of the machine it was written on; put together here, so that this file names none. */
  const machine = new RegExp(['work', 'root', 'home', 'Users'].map((name) => `["'\`\\s(=]/${name}/\\w`).join('|'))

  /** What a merge leaves where two sides changed the same lines. */
  const conflict = /^(?:<{7} |={7}$|>{7} )/

  /** The files with a line that `pattern` finds, each with the number of the first one. */
  const holding = (pattern: RegExp): string[] =>
    // Cases hold what other machines said of themselves.
    files.flatMap((path) => {
      if (path.startsWith('test/cases/')) return []
      const line = text(path)
        .split('\n')
        .findIndex((candidate) => pattern.test(candidate))
      return line < 0 ? [] : [`${path}:${line + 1}`]
    })

  it('names no path of a machine', () => {
    expect(holding(machine)).toEqual([])
  })

  it('has no marks of a merge that was not finished', () => {
    expect(holding(conflict)).toEqual([])
  })

  it('is noticed where it does', () => {
    expect(machine.test(`see ${['', 'home', 'me', 'notes'].join('/')}`)).toBe(true)
    expect(machine.test("import '../work/main.ts' // host.home/x")).toBe(false)
    for (const mark of ['<', '>']) expect(conflict.test(`${mark.repeat(7)} HEAD`)).toBe(true)
    expect(conflict.test('='.repeat(7))).toBe(true)
    expect(conflict.test(`Heading ${'='.repeat(7)}`)).toBe(false)
  })
})
