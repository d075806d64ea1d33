import js from "@eslint/js";
import globals from "globals";

const worklets = ["static/voice/**/*.worklet.js"];

export default [
    { ignores: ["static/unfold/**"] },
    js.configs.recommended,
    {
        files: ["static/voice/**/*.js", "static/embed/**/*.js", "static/operators/**/*.js", "static/docs/**/*.js"],
        languageOptions: { globals: globals.browser },
        linterOptions: { reportUnusedDisableDirectives: "error" },
        rules: {
            eqeqeq: ["error", "always", { null: "ignore" }],
            "no-implicit-globals": "error",
            "no-shadow": "error",
            "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
            "no-var": "error",
            "prefer-const": "error",
            semi: ["error", "always"],
        },
    },
    { files: worklets, languageOptions: { globals: globals.audioWorklet } },
];
