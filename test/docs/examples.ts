/**
 * The TypeScript blocks of all pages as programs of somebody who has installed the package: written into the pages'
 * directories, type-checked together (one run of the compiler serves all), and run one by one.
 */
import { join } from 'node:path'
import ts from 'typescript'
import { type Block, type Page, ROOT } from './page.ts'
import { PASSWORD, type World } from './world.ts'

export interface Example {
  readonly block: Block
  /** Absolute. */
  readonly path: string
  readonly file: string
  /** Line of the file that the first line of the block is. */
  readonly offset: number
}

/** Whether a block is a file of this tree, not a program of somebody who has installed the package. */
export function isOfTree({ file = '' }: Block): boolean {
  return file.startsWith('server/')
}

/** Writes the blocks of a page. A hidden one stands in front of each that follows, up to the next hidden one. */
export function writeExamples(page: Page, world: World): Example[] {
  const examples: Example[] = []
  let front: readonly string[] = []
  for (const block of page.blocks) {
    if (block.language !== 'ts' || isOfTree(block)) continue
    if (block.isHidden) {
      front = block.lines
      continue
    }
    const file = block.file ?? `line-${block.line}.ts`
    const lines = block.file === undefined ? [...front, ...block.lines, 'export {}'] : block.lines
    world.write(
      file,
      lines.map((line) => line.replace(/\bpassword: '[^']*'/, `password: '${PASSWORD}'`)),
    )
    const offset = block.file === undefined ? front.length : 0
    examples.push({ block, path: join(world.directory, file), file, offset })
  }
  return examples
}

/** Who the environment of an example speaks of. */
const USER = 'alice'

/** Made by the server itself. */
const THERE = ['admin', 'local']

/** The users that the examples of a page log in as, and that have to be made. */
export function usersOf({ blocks }: Page): Set<string> {
  const lines = blocks.filter(({ language }) => language === 'ts').flatMap((block) => block.lines)
  const named = [...lines.join('\n').matchAll(/\bidentity: '([^']+)'/g)].map(([, name = '']) => name)
  const isOfEnvironment = lines.some((line) => line.includes('CINNABAR_'))
  return new Set((isOfEnvironment ? [USER, ...named] : named).filter((name) => !THERE.includes(name)))
}

/** What the compiler says of each file, with lines of the document. */
export function typeCheck(examples: readonly Example[]): Map<Example, string[]> {
  const said = new Map<Example, string[]>(examples.map((example) => [example, []]))
  if (examples.length === 0) return said
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT)
  const program = ts.createProgram(
    examples.map(({ path }) => path),
    {
      ...options,
      rootDir: '/',
      noEmit: true,
      // Instead of the declarations, which only the packages have. The sources themselves are not checked again.
      allowImportingTsExtensions: true,
      paths: {
        cinnabar: [join(ROOT, 'server/start/server.ts')],
        'cinnabar/protocol': [join(ROOT, 'protocol/index.ts')],
        'cinnabar/client': [join(ROOT, 'client/index.ts')],
        '@cinnabar/client': [join(ROOT, 'client/index.ts')],
      },
      // What readers need not have switched on.
      noPropertyAccessFromIndexSignature: false,
      exactOptionalPropertyTypes: false,
    },
  )
  for (const example of examples) {
    const source = program.getSourceFile(example.path)
    const problems = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    for (const { messageText, start = 0 } of problems) {
      const inFile = source?.getLineAndCharacterOfPosition(start).line ?? 0
      const line = example.block.line + 1 + inFile - example.offset
      said.get(example)?.push(`line ${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`)
    }
  }
  return said
}

/** What an example prints: the text block after it, or the comments after its console.log, line by line. */
export function shownBy(block: Block, next: Block | undefined): string[] {
  if (next?.language === 'text' && next.line === block.line + block.lines.length + 3) return [...next.lines]
  return block.lines.flatMap((line) => /console\.log\(.*\)\s+\/\/ (.+)$/.exec(line)?.[1] ?? [])
}

export async function runExample({ file }: Example, shown: readonly string[], world: World): Promise<void> {
  const env = {
    CINNABAR_URL: `tcp://127.0.0.1:${world.port(7650)}`,
    CINNABAR_USER: USER,
    CINNABAR_PASSWORD: PASSWORD,
  }
  await world.run({ line: `npx tsx ${file}`, shown, env })
}
