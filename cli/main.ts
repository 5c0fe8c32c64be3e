#!/usr/bin/env node
/** The `cinnabar` program. What it does is in program.ts; here it meets the process. */
import { connect } from '../client/index.ts'
import { run } from './program.ts'
import { processTerminal } from './terminal.ts'

process.exitCode = await run(process.argv.slice(2), { terminal: processTerminal(process), connect })
