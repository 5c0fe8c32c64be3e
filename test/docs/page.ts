/**
 * A document as the tests of test/docs see it: its blocks, what stands in backticks, its links and its headings. A block
 * is fenced, or an HTML comment that begins with a language: that one is run like the others and no reader sees it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = new URL('../..', import.meta.url).pathname

export interface Block {
  /** Where its fence stands. */
  readonly line: number
  readonly language: string
  /** What stands after the language. */
  readonly words: readonly string[]
  readonly lines: readonly string[]
  readonly isHidden: boolean
  /** From its first line `# file: NAME` or `// file: NAME`. */
  readonly file: string | undefined
  /** The heading it stands below, as an anchor. */
  readonly section: string
}

/** Something in a line of text. */
export interface Mention {
  readonly line: number
  readonly text: string
}

export interface Page {
  /** From the root of the tree. */
  readonly path: string
  readonly blocks: readonly Block[]
  /** What stands in backticks. At the beginning of a row of a table whose first head is an npm command it goes on with that. */
  readonly spans: readonly Mention[]
  readonly links: readonly Mention[]
  readonly anchors: ReadonlySet<string>
}

/** Every document of the project. */
export function pages(): Page[] {
  const inDocs = readdirSync(join(ROOT, 'docs'), { recursive: true }).map((path) => join('docs', String(path)))
  const inAgents = readdirSync(join(ROOT, 'agents')).map((agent) => join('agents', agent, 'README.md'))
  const paths = [...readdirSync(ROOT), ...inDocs, ...inAgents].filter((path) => path.endsWith('.md')).sort()
  return paths.map((path) => readPage(path, readFileSync(join(ROOT, path), 'utf8')))
}

interface Open {
  readonly line: number
  readonly end: RegExp
  readonly head: string
  readonly indent: number
  readonly isHidden: boolean
  readonly lines: string[]
}

const FENCE = /^( *)(`{3,}|~{3,})(.*)$/
const HIDDEN = /^<!-- ((?:console|ts)(?: \w+)*)$/

export function readPage(path: string, text: string): Page {
  const blocks: Block[] = []
  const spans: Mention[] = []
  const links: Mention[] = []
  const headings: string[] = []
  let open: Open | undefined
  let head: string | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const number = index + 1
    if (open !== undefined) {
      if (open.end.test(line)) {
        blocks.push(toBlock(open, headings.at(-1) ?? ''))
        open = undefined
      } else open.lines.push(line.slice(Math.min(open.indent, line.search(/\S|$/))))
      continue
    }
    const fence = FENCE.exec(line)
    const hidden = HIDDEN.exec(line)
    if (fence !== null) {
      const [, indent = '', marks = '', head = ''] = fence
      const end = new RegExp(`^ *${marks}+ *$`)
      open = { line: number, end, head, indent: indent.length, isHidden: false, lines: [] }
    } else if (hidden !== null) {
      open = { line: number, end: /^-->$/, head: hidden[1] ?? '', indent: 0, isHidden: true, lines: [] }
    } else {
      const heading = /^#{1,6} (.+)$/.exec(line)?.[1]
      if (heading !== undefined) headings.push(anchorOf(heading, headings))
      const found = [...line.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, text = '']) => ({ line: number, text }))
      const isFirst = /^\| `/.test(line)
      if (!line.startsWith('|')) head = undefined
      else if (head === undefined) head = found[0]?.text.startsWith('npm ') && isFirst ? found[0].text : ''
      else if (head !== '' && /^\| `[a-z-]/.test(line) && found[0])
        found[0] = { line: number, text: `${head} ${found[0].text}` }
      spans.push(...found)
      const plain = line.replace(/`[^`]*`/g, '``')
      for (const match of plain.matchAll(/\]\(([^()\s]+)\)/g)) links.push({ line: number, text: match[1] ?? '' })
    }
  }
  if (open !== undefined) throw new Error(`${path}:${open.line}: this block is not closed`)
  return { path, blocks, spans, links, anchors: new Set(headings) }
}

function toBlock({ line, head, isHidden, lines }: Open, section: string): Block {
  const [language = '', ...words] = head.trim().split(/\s+/)
  const file = /^(?:\/\/|#) file: (\S+)$/.exec(lines[0] ?? '')?.[1]
  return { line, language, words, lines, isHidden, file, section }
}

/** As GitHub makes them: a second heading of the same words gets a number. */
function anchorOf(heading: string, before: readonly string[]): string {
  const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
  const anchor = words.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-')
  const same = before.filter((other) => other.replace(/-\d+$/, '') === anchor).length
  return same === 0 ? anchor : `${anchor}-${same}`
}
