/**
 * The program that checks the types of projects with one compiler, as its `tsc -p` would check each, and prints what it says of each
 * as JSON. The compiler is loaded once, and reads its own declarations, the most of what there is to read, once for all projects.
 */
import { pathToFileURL } from 'node:url'
import type ts from 'typescript'

type Compiler = typeof ts

/** `configs`: the paths of their tsconfig.json. */
function typeCheck(compiler: Compiler, configs: readonly string[]): Record<string, string> {
  const own = new Map<string, ts.SourceFile | undefined>()
  return Object.fromEntries(configs.map((config) => [config, check(compiler, config, own)]))
}

/** `own`: the declarations of the compiler that are read. */
function check(compiler: Compiler, config: string, own: Map<string, ts.SourceFile | undefined>): string {
  const host: ts.ParseConfigFileHost = {
    ...compiler.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(compiler.flattenDiagnosticMessageText(messageText, '\n'))
    },
  }
  const parsed = compiler.getParsedCommandLineOfConfigFile(config, {}, host)
  if (parsed === undefined) throw new Error(`${config} cannot be read`)
  const { options, fileNames, errors } = parsed
  const files = compiler.createCompilerHost(options)
  const folder = files.getDefaultLibLocation?.()
  if (folder === undefined) throw new Error('the compiler does not say where its declarations are')
  const program = compiler.createProgram({
    rootNames: fileNames,
    options,
    configFileParsingDiagnostics: errors,
    host: {
      ...files,
      getSourceFile: (name, ...rest) => {
        if (!name.startsWith(folder)) return files.getSourceFile(name, ...rest)
        if (!own.has(name)) own.set(name, files.getSourceFile(name, ...rest))
        return own.get(name)
      },
    },
  })
  const said = [...compiler.getPreEmitDiagnostics(program)]
  if (options.noEmit !== true) said.push(...program.emit().diagnostics)
  return compiler.formatDiagnostics(said, files)
}

const [path = '', ...configs] = process.argv.slice(2)
const { default: compiler }: { default: Compiler } = await import(pathToFileURL(path).href)
console.log(JSON.stringify(typeCheck(compiler, configs)))
