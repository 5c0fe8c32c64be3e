/** What documents speak of in a line is there: links and their anchors, paths, commands with their options. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from '../cli/fake-cli.ts'
import { check, insteadOf, optionsOf } from './instead.ts'
import { type Mention, pages, ROOT } from './page.ts'

const documents = pages()
const anchors = new Map(documents.map((page) => [page.path, page.anchors]))
const LEFT_OUT = /^(node_modules|dist|\.git)(\/|$)/
/** Of the whole tree, with a slash in front. */
const files = readdirSync(ROOT, { withFileTypes: true })
  .filter(({ name }) => !LEFT_OUT.test(name))
  .flatMap((entry) => [
    `/${entry.name}`,
    ...(entry.isDirectory() ? readdirSync(join(ROOT, entry.name), { recursive: true }) : []).map(
      (path) => `/${entry.name}/${path}`,
    ),
  ])
const folders = readdirSync(ROOT).filter((name) => statSync(join(ROOT, name)).isDirectory() && !LEFT_OUT.test(name))

/** What is wrong with a link of a page; of links to elsewhere only the form is judged. */
function brokenLink(path: string, link: string): string | undefined {
  if (/^https?:/.test(link)) return URL.canParse(link) ? undefined : 'no URL'
  const [file = '', anchor] = link.split('#')
  const target = file === '' ? path : normalize(join(dirname(path), file))
  if (!existsSync(join(ROOT, target))) return `there is no ${target}`
  if (anchor === undefined) return undefined
  return anchors.get(target)?.has(anchor) ? undefined : `${target} has no heading for #${anchor}`
}

/** It begins with a folder of the tree, or is a source: `server/kernel/core/clock.ts`, `channels/journal.ts`, `protocol/<format>/`. */
function isPath(text: string): boolean {
  if (!/^[\w.-]+(\/[\w.<>*-]+)*\/?(#[\w-]+)?$/.test(text)) return false
  const [first = '', ...rest] = text.split('/')
  return (rest.length > 0 && folders.includes(first)) || /^[\w/<>*-]+\.(ts|mjs|md)(#[\w-]+)?$/.test(text)
}

/** From the root, or the end of the path of some file; `<x>` and `*` stand for any name. */
function isThere(text: string): boolean {
  const [path = '', anchor] = text.replace(/\/$/, '').split('#')
  const pieces = path.split(/<[^>]+>|\*/).map((piece) => piece.replace(/[.]/g, '\\.'))
  const pattern = new RegExp(`/${pieces.join('[^/]+')}$`)
  if (!files.some((file) => pattern.test(file))) return false
  return anchor === undefined || (anchors.get(path)?.has(anchor) ?? false)
}

/** `npx cinnabar watch --count 3`: the words before the first option or argument name the subcommand. */
async function unknownWord(words: readonly string[]): Promise<string | undefined> {
  const first = words.findIndex((word) => !/^[a-z]+$/.test(word))
  const path = words.slice(0, first < 0 ? words.length : first)
  for (let length = path.length; length >= 0; length--) {
    const { code, out } = await runCli([...path.slice(0, length), '--help'])
    const help = out.join('\n')
    if (code !== 0 || (length > 0 && !help.includes(`cinnabar ${path.slice(0, length).join(' ')} `))) continue
    if (length === 0 && path.length > 0) return path[0]
    return optionsOf(words).find((option) => !new RegExp(`--${option}\\b`).test(help))
  }
  return path[0]
}

const pagesWithTests = documents
  .map(({ path, links, spans }) => {
    const at = ({ line, text }: Mention) => ({ text, at: `${path}:${line}` })
    const isOurs = ({ text }: Mention) => /^(npx )?cinnabar [a-z-]/.test(text)
    const isOther = (span: Mention) => /^(npm|npx|bash) /.test(span.text) && span.text !== 'npm start' && !isOurs(span)
    return {
      path,
      links,
      paths: spans.filter(({ text }) => isPath(text)).map(at),
      ours: spans.filter(isOurs).map(at),
      others: spans.filter(isOther).map(at),
    }
  })
  .filter(({ links, paths, ours, others }) => [links, paths, ours, others].some((list) => list.length > 0))

describe.each(pagesWithTests)('in $path', ({ path, links, paths, ours, others }) => {
  it('links and paths lead somewhere', () => {
    const broken = links.map((link) => ({ ...link, problem: brokenLink(path, link.text) }))
    expect(broken.filter(({ problem }) => problem !== undefined)).toEqual([])
    expect(paths.filter(({ text }) => !isThere(text))).toEqual([])
  })

  for (const { text, at } of ours) {
    it(`\`${text}\` is a command that the program knows (${at})`, async () => {
      const words = text.replace(/^npx /, '').split(/\s+/)
      expect(await unknownWord(words.slice(1))).toBeUndefined()
    })
  }
  for (const { text, at } of others) {
    it(`\`${text}\` can be run (${at})`, () => {
      expect(insteadOf(text), 'see test/docs/instead.ts').toBeDefined()
      check(text)
    })
  }
})
