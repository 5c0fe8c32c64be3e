#!/usr/bin/env node
/** The `cinnabar` program: connects program.ts to the process. */
import { connect } from '../client/index.ts'
import { run } from './program.ts'
import { processTerminal } from './terminal.ts'

process.exitCode = await run(process.argv.slice(2), { terminal: processTerminal(process), connect })
